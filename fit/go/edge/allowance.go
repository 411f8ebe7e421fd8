package edge

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const (
	// maxDevices is how many enrolled devices one process remembers, over all experiments. When that many
	// are, nobody else is enrolled before an experiment ends.
	maxDevices = 200_000

	// maxReport is how many characters a report has; it travels in a URL.
	maxReport = 4000
)

// allowances are how many devices an edge has treated, and for which it may still do so. A device is counted
// before its stamped request goes on, and never twice. An experiment whose allowance is used up enrols nobody
// any more, in either arm: to close one alone would compare devices of different moments. Whoever is enrolled
// stays enrolled.
type allowances struct {
	mutex      sync.Mutex
	order      []string // of experiments, as they came
	enrolments map[string]*enrolment
	remembered int
}

// enrolment is the devices of one experiment.
type enrolment struct {
	members  *int64
	armed    bool
	reported int
	wants    bool // one was turned away that would have been treated
	told     bool // the control plane knows that
	devices  map[fit.Arm]map[mark]bool
}

// enrolled is what a report says of an experiment: distinct devices, by arm.
type enrolled struct {
	experiment         string
	treatment, control int
	wants              bool
}

func (e *enrolment) used() int { return len(e.devices[fit.Treatment]) }
func (e *enrolment) size() int { return e.used() + len(e.devices[fit.Control]) }

func (e *enrolment) closed() bool { return e.members != nil && int64(e.used()) >= *e.members }

func (e *enrolment) urgent() bool {
	return !e.armed || (e.closed() && e.used() != e.reported) || (e.wants && !e.told)
}

func (e *enrolment) allow(members *int64) {
	if (members == nil) != (e.members == nil) || (members != nil && *members != *e.members) {
		e.members, e.wants, e.told = members, false, false
	}
}

// renew takes over the rules of a new lease. Those that have left are frozen until reported.
func (a *allowances) renew(rules []rule) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, experiment := range slices.Clone(a.order) {
		known := a.enrolments[experiment]
		known.armed = slices.ContainsFunc(rules, func(each rule) bool { return each.experiment == experiment })
		if !known.armed && known.size() == 0 {
			a.forget(experiment)
		}
	}
	for _, each := range rules {
		if known := a.enrolments[each.experiment]; known != nil {
			known.allow(each.members)
			continue
		}
		if a.enrolments == nil {
			a.enrolments = map[string]*enrolment{}
		}
		a.order = append(a.order, each.experiment)
		a.enrolments[each.experiment] = &enrolment{members: each.members, armed: true,
			devices: map[fit.Arm]map[mark]bool{fit.Treatment: {}, fit.Control: {}}}
	}
}

// admit tells whether a device may be stamped, and whether it was admitted before; it is counted when it is
// admitted for the first time.
func (a *allowances) admit(experiment string, arm fit.Arm, device mark) (admitted, before bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	known := a.enrolments[experiment]
	if known == nil {
		return false, false
	}
	before = known.devices[arm][device]
	if !known.armed || before {
		return known.armed, before
	}
	if known.closed() || a.remembered >= maxDevices {
		known.wants = known.wants || (known.closed() && arm == fit.Treatment)
		return false, false
	}
	known.devices[arm][device] = true
	a.remembered++
	return true, false
}

// report counts the distinct devices enrolled; urgent experiments first, as many as a URL holds.
func (a *allowances) report() []enrolled {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pressing := slices.Clone(a.order)
	slices.SortStableFunc(pressing, func(one, other string) int {
		return toInt(a.enrolments[other].urgent()) - toInt(a.enrolments[one].urgent())
	})
	var report []enrolled
	room := maxReport
	for _, experiment := range pressing {
		known := a.enrolments[experiment]
		if known.size() == 0 && !known.wants {
			continue
		}
		one := enrolled{experiment, known.used(), known.size() - known.used(), known.wants}
		used, control, wants := written([]enrolled{one})
		if room -= len(used) + len(control) + len(wants) + 3; room < 0 {
			break
		}
		report = append(report, one)
	}
	return report
}

func toInt(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// settle forgets what had left the lease before a report that the control plane now has.
func (a *allowances) settle(report []enrolled) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, each := range report {
		known := a.enrolments[each.experiment]
		if known == nil {
			continue
		}
		known.reported, known.told = each.treatment, each.wants
		if !known.armed {
			a.forget(each.experiment)
		}
	}
}

// urgent tells whether there is something that the control plane should hear at once.
func (a *allowances) urgent() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, each := range a.enrolments {
		if each.urgent() {
			return true
		}
	}
	return false
}

func (a *allowances) forget(experiment string) {
	a.remembered -= a.enrolments[experiment].size()
	delete(a.enrolments, experiment)
	a.order = slices.DeleteFunc(a.order, func(each string) bool { return each == experiment })
}

// written puts a report into the words of a URL.
func written(report []enrolled) (used, control, wants string) {
	var treated, compared, wanting []string
	for _, each := range report {
		if each.treatment > 0 {
			treated = append(treated, fmt.Sprintf("%s:%d", each.experiment, each.treatment))
		}
		if each.control > 0 {
			compared = append(compared, fmt.Sprintf("%s:%d", each.experiment, each.control))
		}
		if each.wants {
			wanting = append(wanting, each.experiment)
		}
	}
	return strings.Join(treated, ","), strings.Join(compared, ","), strings.Join(wanting, ",")
}
