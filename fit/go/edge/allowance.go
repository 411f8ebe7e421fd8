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
// any more, in either arm: to close one alone would compare devices of different moments. A device of either
// arm may then be asked for, one by one. Whoever is enrolled stays enrolled.
type allowances struct {
	mutex      sync.Mutex
	order      []string // of experiments, as they came
	enrolments map[string]*enrolment
	remembered int
	asks       numbers
	late       int // devices that nobody was granted in time, in all
}

// enrolment is the devices of one experiment.
type enrolment struct {
	members  *int64 // nil is no limit
	given    bool   // by a lease; what a stream offers is nobody's allowance
	armed    bool
	reported enrolled // the last report that the control plane has
	wants    bool     // one was turned away that would have been treated
	frozen   bool     // a report was written after it had left the lease
	devices  map[fit.Arm]map[mark]bool
}

// enrolled is what a report says of an experiment: distinct devices, by arm.
type enrolled struct {
	experiment         string
	treatment, control int
	wants              bool
}

// A report is what the control plane hears of the devices, up to which number all asks are settled, and for how
// many devices no answer came in time.
type report struct {
	counts      []enrolled
	asked, late int
}

func (e *enrolment) used() int { return len(e.devices[fit.Treatment]) }
func (e *enrolment) size() int { return e.used() + len(e.devices[fit.Control]) }

func (e *enrolment) closed() bool {
	return e.given && e.members != nil && int64(e.used()) >= *e.members
}

// enrolled counts as of now.
func (e *enrolment) enrolled(experiment string) enrolled {
	return enrolled{experiment, e.used(), e.size() - e.used(), e.wants}
}

// urgent tells of what the control plane should hear at once. Of whom it has granted it knows.
func (e *enrolment) urgent() bool {
	usedUp := e.closed() && *e.members > 0
	return !e.armed || (usedUp && e.used() != e.reported.treatment) || (e.wants && !e.reported.wants)
}

func (e *enrolment) allow(members *int64) {
	if !e.given || (members == nil) != (e.members == nil) || (members != nil && *members != *e.members) {
		e.members, e.given, e.wants, e.reported.wants = members, true, false, false
	}
}

// renew takes over the rules of a new lease. Those that have left are frozen until reported.
func (a *allowances) renew(rules []rule) {
	a.take(rules, func(known *enrolment, members *int64) { known.allow(members) })
}

// offer takes over rules that nobody may act upon yet. With an allowance of none devices can be asked for; a
// larger one has to come with a lease.
func (a *allowances) offer(rules []rule) {
	a.take(rules, func(known *enrolment, members *int64) {
		if !known.given && members != nil && *members == 0 {
			known.allow(members)
		}
	})
}

func (a *allowances) take(rules []rule, allow func(known *enrolment, members *int64)) {
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
		if a.enrolments[each.experiment] == nil {
			a.remember(each.experiment)
		}
		allow(a.enrolments[each.experiment], each.members)
	}
}

func (a *allowances) remember(experiment string) {
	if a.enrolments == nil {
		a.enrolments = map[string]*enrolment{}
	}
	a.order = append(a.order, experiment)
	a.enrolments[experiment] = &enrolment{
		armed: true, devices: map[fit.Arm]map[mark]bool{fit.Treatment: {}, fit.Control: {}},
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
	if !known.given || known.closed() || a.remembered >= maxDevices {
		known.wants = known.wants || (known.closed() && arm == fit.Treatment)
		return false, false
	}
	known.devices[arm][device] = true
	a.remembered++
	return true, false
}

// usedUp tells whether a device can only be enrolled if it is asked for.
func (a *allowances) usedUp(whom asking) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	known := a.enrolments[whom.experiment]
	return known != nil && known.armed && known.closed() && !known.devices[whom.arm][whom.device] &&
		a.remembered < maxDevices
}

// ask returns the number of an ask that is to be made.
func (a *allowances) ask() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.asks.next()
}

// settled takes note that an ask has come to its end, and tells whether the device is enrolled by it.
func (a *allowances) settled(ask int, granted bool, whom asking) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.asks.settle(ask)
	known := a.enrolments[whom.experiment]
	if !granted || known == nil || !known.armed || a.remembered >= maxDevices {
		return false
	}
	if !known.devices[whom.arm][whom.device] {
		known.devices[whom.arm][whom.device] = true
		a.remembered++
	}
	return true
}

// tooLate counts a device that nobody was granted in time.
func (a *allowances) tooLate() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.late++
}

// hasNews tells whether the control plane has to hear of anything: of devices that are enrolled, or of asks.
func (a *allowances) hasNews() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.asks.settled() > a.asks.told {
		return true
	}
	for _, each := range a.enrolments {
		if each.size() > 0 {
			return true
		}
	}
	return false
}

// report counts the distinct devices enrolled; urgent experiments first, as many as a URL holds. Asks are said
// to be settled only where nobody whom they enrolled is left out.
func (a *allowances) report() report {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pressing := slices.Clone(a.order)
	slices.SortStableFunc(pressing, func(one, other string) int {
		return toInt(a.enrolments[other].urgent()) - toInt(a.enrolments[one].urgent())
	})
	made := report{asked: a.asks.settled(), late: a.late}
	room := maxReport
	for _, experiment := range pressing {
		known := a.enrolments[experiment]
		known.frozen = !known.armed
		one := known.enrolled(experiment)
		if known.size() == 0 && !known.wants {
			continue
		}
		if room -= one.length(); room >= 0 {
			made.counts = append(made.counts, one)
		} else if one.treatment != known.reported.treatment || one.control != known.reported.control {
			made.asked = a.asks.told
		}
	}
	return made
}

func toInt(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// settle forgets what had left the lease before a report that the control plane now has.
func (a *allowances) settle(heard report) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.asks.told = max(a.asks.told, heard.asked)
	for _, each := range heard.counts {
		known := a.enrolments[each.experiment]
		if known == nil {
			continue
		}
		known.reported = each
		if known.frozen && !known.armed {
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

// length is how many characters an experiment takes in a report, and a separator for each of its words.
func (e enrolled) length() int {
	used, control, wants := written([]enrolled{e})
	return len(used) + len(control) + len(wants) + 3
}

// written puts counts into the words of a URL.
func written(counts []enrolled) (used, control, wants string) {
	var treated, compared, wanting []string
	for _, each := range counts {
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
