package edge

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// A fault is how a rule has a point fail: "status:503:2@api>http:GET:ratings/" fails its first two calls in a
// request; with a first of 0 all of them fail.
type fault struct {
	point   string
	kind    fit.Kind // of "delay:" and "slow:" with the length, or the lengths that are drawn
	first   int
	lengths distribution // nil where the kind says none
}

func parseFault(text string) (fault, error) {
	how, point, _ := strings.Cut(text, "@")
	parts := strings.Split(how, ":")
	for kept := min(2, len(parts)); kept > 0 && point != ""; kept-- { // no kind with an argument is one without
		kind, lengths, ok := parseKind(strings.Join(parts[:kept], ":"))
		first, counts := parseFirst(parts[kept:])
		if ok && counts {
			return fault{point, kind, first, lengths}, nil
		}
	}
	return fault{}, fmt.Errorf("%.80q is not a fault; write KIND@POINT, such as error@api>http:GET:ratings/", text)
}

func parseKind(text string) (fit.Kind, distribution, bool) {
	if said, ok := strings.CutPrefix(text, string(fit.Delay)+":"); ok {
		lengths := lengthsOf(said)
		return fit.Kind(text), lengths, lengths != nil && strings.Contains(said, "..")
	}
	if said, ok := strings.CutPrefix(text, string(fit.Slow)+":"); ok {
		lengths := lengthsOf(said)
		return fit.Kind(text), lengths, lengths != nil
	}
	kind, err := fit.ParseKind(text)
	return kind, nil, err == nil
}

// parseFirst reads the number of calls, 1 to 99, if there is one.
func parseFirst(parts []string) (int, bool) {
	if len(parts) == 0 {
		return 0, true
	}
	first, err := strconv.ParseUint(parts[0], 10, 7)
	return int(first), err == nil && len(parts) == 1 && first >= 1 && first <= 99 && parts[0] == strconv.Itoa(int(first))
}

// milliseconds returns how long a fault may take: longest, or less where its kind says so, by the lot.
func (f fault) milliseconds(longest int64, lot string) int64 {
	if f.lengths == nil {
		return longest
	}
	drawn := math.RoundToEven(1000 * f.lengths(shareOf(lot+"\n"+f.point)))
	return min(max(1, int64(drawn)), longest)
}

func (f fault) word() string {
	word, _ := f.kind.Family()
	return word
}

func (f fault) late() bool {
	return f.kind.Late()
}

// strength ranks a fault among those of one point: a delay may be outlasted, one that says a length is shorter, a
// timeout comes late, "error" says the least of how it looks and so is what is kept.
func (f fault) strength() int {
	switch {
	case f.lengths != nil:
		return 0
	case f.kind == fit.Delay:
		return 1
	case f.kind == fit.Timeout:
		return 2
	case f.kind == fit.Error:
		return 4
	}
	return 3
}
