package edge

import "strings"

// features are what is known of a request when it arrives, by name (fit/protocol/features.py).
type features map[string]string

// A condition is met by requests that have a feature, with this value or any; or, negated, that have not.
type condition struct {
	feature string
	value   *string // nil: the feature is there at all
	negated bool
}

// A predicate is what a request class is to an edge: all of its conditions are met.
type predicate []condition

func (p predicate) holds(of features) bool {
	for _, each := range p {
		if !each.holds(of) {
			return false
		}
	}
	return true
}

func (c condition) holds(of features) bool {
	if c.negated {
		return !c.matches(of) && mayBeDenied(c.feature, of)
	}
	return c.matches(of)
}

func (c condition) matches(of features) bool {
	if c.feature == "route" {
		return c.value != nil && fits(*c.value, of["path"])
	}
	value, present := of[c.feature]
	return present && (c.value == nil || *c.value == value)
}

// fits tells whether a path fits a template: "*" there stands for any one segment.
func fits(template, path string) bool {
	wanted, given := strings.Split(template, "/"), strings.Split(path, "/")
	if len(wanted) != len(given) {
		return false
	}
	for i, each := range wanted {
		if each != given[i] && (each != "*" || given[i] == "") {
			return false
		}
	}
	return true
}

// mayBeDenied tells whether it is known that a request does not have a feature. What a version does not know
// never holds, negated or not; of some what was not read may tell more.
func mayBeDenied(feature string, of features) bool {
	family, _, _ := strings.Cut(feature, ".")
	switch family {
	case "operation", "method", "path", "query", "header", "route", "device", "cookie", "baggage":
		return true
	case "protocol", "falcor", "graphql", "jsonrpc":
		_, unread := of["unread"]
		return !unread
	}
	return false
}
