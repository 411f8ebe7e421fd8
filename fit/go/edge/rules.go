package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const (
	// maxLease is how long injection may outlive the control plane; a longer lease is cut to it.
	maxLease = time.Minute
	// maxPatience is how long a context may be asked to hold.
	maxPatience = 2 * time.Minute

	maxVersion = 64 // characters
	maxDelay   = 9_999_999
)

var experimentForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// errRules is what a lease is refused with that is not understood as a whole.
var errRules = errors.New("rules not understood")

// A rule is one armed experiment.
type rule struct {
	experiment string
	salt       string
	predicate  predicate
	claim      claim
	yieldsTo   []claim
	faults     []fault
	delay      int64         // the longest that a call may hang, in milliseconds
	members    *int64        // how many distinct devices this edge may treat, in all; nil is no limit
	draws      bool          // a length is drawn anew for each request
	patience   time.Duration // a context holds for so long at least
}

// A lease is rules, and how long they hold.
type lease struct {
	rules   []rule
	seconds time.Duration
	version string
	asks    bool            // the control plane can be asked for one device more
	wanted  map[string]bool // features that the rules ask for
}

// allots tells whether devices may be treated without being asked for.
func (l *lease) allots() bool {
	return slices.ContainsFunc(l.rules, func(each rule) bool { return each.members == nil || *each.members > 0 })
}

// A claimed device is in this arm of a rule's experiment, if its request is of the class.
type claimed struct {
	rule *rule
	arm  fit.Arm
}

// claims returns the rules that claim a device. There are several only where it is in control of all of them;
// where they do not yield to each other as they should, the first one has it.
func (l *lease) claims(device mark) []claimed {
	var found []claimed
	for i := range l.rules {
		each := &l.rules[i]
		arm := each.claim.armOf(device)
		if arm == "" || !each.keeps(device, arm) || (len(found) > 0 && arm == fit.Treatment) {
			continue
		}
		found = append(found, claimed{each, arm})
		if arm == fit.Treatment {
			break
		}
	}
	return found
}

// keeps tells whether those that a rule yields to leave it a device that falls in this arm.
func (r *rule) keeps(device mark, arm fit.Arm) bool {
	for _, each := range r.yieldsTo {
		theirs := each.armOf(device)
		if theirs == fit.Treatment || (theirs == fit.Control && arm == fit.Treatment) {
			return false
		}
	}
	return true
}

// What the control plane says. A pointer is nil for what is not there, and for null.
type (
	leaseText struct {
		Version *string    `json:"version"`
		Seconds *float64   `json:"lease_seconds"`
		Asks    bool       `json:"asks"`
		Rules   []ruleText `json:"rules"`
	}
	sharesText struct {
		Salt      *string  `json:"salt"`
		Treatment *float64 `json:"treatment"`
		Control   *float64 `json:"control"`
	}
	ruleText struct {
		sharesText
		Experiment *string         `json:"experiment"`
		Predicate  []conditionText `json:"predicate"`
		Faults     []string        `json:"faults"`
		Delay      *int64          `json:"delay_ms"`
		Members    *int64          `json:"members"`
		YieldsTo   []sharesText    `json:"yields_to"`
		Patience   float64         `json:"patience"`
	}
	conditionText struct {
		Feature *string         `json:"feature"`
		Value   json.RawMessage `json:"value"`
		Negated *bool           `json:"negated"`
	}
)

// readLease reads the control plane's answer, all or nothing.
func readLease(text []byte) (*lease, error) {
	var said leaseText
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: no UTF-8", errRules)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&said); err != nil {
		return nil, fmt.Errorf("%w: %w", errRules, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: more follows", errRules)
	}
	read, err := said.read()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRules, err)
	}
	return read, nil
}

func (l leaseText) read() (*lease, error) {
	switch {
	case l.Rules == nil:
		return nil, errors.New("rules is not a list")
	case l.Seconds == nil || *l.Seconds < 0:
		return nil, errors.New("lease_seconds")
	case l.Version == nil || utf8.RuneCountInString(*l.Version) > maxVersion:
		return nil, errors.New("version")
	}
	seconds := min(*l.Seconds, maxLease.Seconds())
	read := &lease{
		seconds: time.Duration(seconds * float64(time.Second)), version: *l.Version, asks: l.Asks,
		wanted: map[string]bool{},
	}
	known := map[string]bool{}
	for _, each := range l.Rules {
		one, err := each.read()
		if err != nil {
			return nil, err
		}
		if known[one.experiment] {
			return nil, fmt.Errorf("two are of experiment %s", one.experiment)
		}
		known[one.experiment] = true
		for _, condition := range one.predicate {
			read.wanted[condition.feature] = true
		}
		read.rules = append(read.rules, one)
	}
	return read, nil
}

func (r ruleText) read() (rule, error) {
	switch {
	case r.Experiment == nil || !experimentForm.MatchString(*r.Experiment):
		return rule{}, errors.New("experiment")
	case r.Predicate == nil || r.Faults == nil:
		return rule{}, errors.New("predicate and faults are lists")
	case r.Delay == nil || *r.Delay < 0 || *r.Delay > maxDelay:
		return rule{}, errors.New("delay_ms")
	case r.Members != nil && *r.Members < 0:
		return rule{}, errors.New("members")
	case r.Patience < 0 || r.Patience > maxPatience.Seconds():
		return rule{}, errors.New("patience")
	}
	own, err := r.claim()
	if err != nil {
		return rule{}, err
	}
	made := rule{
		experiment: *r.Experiment, salt: *r.Salt, claim: own, delay: *r.Delay, members: r.Members,
		patience: time.Duration(r.Patience * float64(time.Second)),
	}
	for _, each := range r.YieldsTo {
		one, err := each.claim()
		if err != nil {
			return rule{}, err
		}
		made.yieldsTo = append(made.yieldsTo, one)
	}
	for _, each := range r.Faults {
		one, err := parseFault(each)
		if err != nil {
			return rule{}, err
		}
		made.faults = append(made.faults, one)
		made.draws = made.draws || one.lengths != nil
	}
	made.predicate, err = readPredicate(r.Predicate)
	return made, err
}

func (s sharesText) claim() (claim, error) {
	if s.Salt == nil || !isShare(s.Treatment) || !isShare(s.Control) || *s.Treatment+*s.Control > 1+1e-9 {
		return claim{}, errors.New("salt and shares")
	}
	return claimOf(*s.Salt, *s.Treatment, *s.Control), nil
}

func isShare(number *float64) bool { return number != nil && *number >= 0 && *number <= 1 }

func readPredicate(said []conditionText) (predicate, error) {
	var read predicate
	for _, each := range said {
		one := condition{}
		if each.Feature == nil || each.Negated == nil || each.Value == nil ||
			json.Unmarshal(each.Value, &one.value) != nil {
			return nil, errors.New("predicate")
		}
		one.feature, one.negated = *each.Feature, *each.Negated
		if !one.guards() {
			read = append(read, one)
		}
	}
	return read, nil
}

// guards tells whether a condition stands beside others that an older edge would wrongly hold for met. We are
// none, so we leave it out.
func (c condition) guards() bool {
	return c.feature == "features" && c.value != nil && *c.value == "2" && !c.negated
}
