package edge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const maxChosen = 20 // features; more of them would be a user, not a kind of request

var (
	chosenName   = regexp.MustCompile("^(?:header|cookie|baggage)\\.[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$")
	chosenSecret = regexp.MustCompile(`(?i)auth|cookie|token|secret|session|passw|api-?key|credential`)
)

// parseChosen reads which headers, cookies and entries of the baggage spans shall tell of, as in
// "header.x-plan,cookie.ab". What carries credentials cannot be chosen; the error names it, and what can be
// chosen is returned all the same.
func parseChosen(text string) (map[string]bool, error) {
	var found, refused []string
	for _, each := range strings.Split(text, ",") {
		each = strings.TrimSpace(each)
		kind, name, _ := strings.Cut(each, ".")
		switch {
		case each == "":
		case !chosenName.MatchString(each) || chosenSecret.MatchString(name):
			refused = append(refused, cut(each, 80))
		case kind == "header":
			found = append(found, "header."+strings.ToLower(name))
		default:
			found = append(found, each)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	chosen := map[string]bool{}
	for _, each := range found[:min(maxChosen, len(found))] {
		chosen[each] = true
	}
	if refused != nil {
		return chosen, fmt.Errorf("FIT_FEATURES names %q, which are no features that can be chosen", refused)
	}
	return chosen, nil
}
