package fit

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is how a call fails, as its caller sees it: "refused", "status:503", "grpc:UNAVAILABLE".
type Kind string

// Kinds that wrappers ask for by name. The others are in kinds.json.
const (
	Error     Kind = "error" // what the library does when the dependency is down
	Delay     Kind = "delay"
	Refused   Kind = "refused"
	Reset     Kind = "reset"
	Timeout   Kind = "timeout"
	Empty     Kind = "empty"
	Truncated Kind = "truncated"
	Corrupt   Kind = "corrupt"
	Slow      Kind = "slow" // the answer's body comes over a length of time
)

// kindsJSON is what is known of each kind, for all languages: a copy of fit/protocol/kinds.json, whose reader in
// Python says what the fields mean.
//
//go:embed kinds.json
var kindsJSON []byte

type record struct {
	Version  int
	Late     bool
	Body     bool
	Named    bool
	Status   int
	Argument *struct {
		Among    []string
		Pattern  string
		Optional bool
		form     *regexp.Regexp
	}
	Answer *struct {
		Body    string
		Missing int
	}
	Connecting *struct{ Go dialing }
}

var (
	kinds         = readKinds(kindsJSON)
	latestVersion = slices.MaxFunc(slices.Collect(maps.Values(kinds)), byVersion).Version
)

func byVersion(a, b record) int { return cmp.Compare(a.Version, b.Version) }

func readKinds(text []byte) map[string]record {
	var read struct{ Kinds map[string]record }
	if err := json.Unmarshal(text, &read); err != nil {
		panic(err) // it is compiled in
	}
	for _, each := range read.Kinds {
		if each.Argument != nil && each.Argument.Pattern != "" {
			each.Argument.form = regexp.MustCompile("^(?:" + each.Argument.Pattern + ")$")
		}
	}
	return read.Kinds
}

// Injection is what a failure context asks of one point. For "delay" and "timeout" the call hangs for
// Longest at most; of "slow" the body comes over it. First is the number of calls of a request that are hit; 0 is every call.
type Injection struct {
	Kind    Kind
	Longest time.Duration
	First   int
}

// Family returns the word with which a kind begins, and what follows its colon.
func (k Kind) Family() (word, argument string) {
	word, argument, _ = strings.Cut(string(k), ":")
	return word, argument
}

func (k Kind) record() record {
	word, _ := k.Family()
	return kinds[word]
}

// Late tells whether a kind takes its time, so that a context says how long.
func (k Kind) Late() bool { return k.record().Late }

// Version returns the first version of failure contexts that can say this kind.
func (k Kind) Version() int { return k.record().Version }

// Status returns N of "status:N"; 0 for every other kind.
func (k Kind) Status() int {
	word, argument := k.Family()
	if word != "status" {
		return 0
	}
	status, _ := strconv.Atoi(argument)
	return status
}

// ParseKind reads a kind as rules and marks write it, "refused" or "status:503".
func ParseKind(text string) (Kind, error) {
	kind := Kind(text)
	word, argument, says := strings.Cut(text, ":")
	if found, known := kinds[word]; known && (!says && found.standsAlone() || found.takes(argument)) {
		return kind, nil
	}
	words := slices.Sorted(maps.Keys(kinds))
	return "", fmt.Errorf("%q is not a kind of fault; the kinds are %s", text, strings.Join(words, ", "))
}

// injectionOf reads how a group of points fails in this version, as in "status-503-n2".
func injectionOf(version int, how string) (Injection, bool) {
	parts := strings.Split(how, "-")
	word, rest := parts[0], parts[1:]
	found, known := kinds[word]
	if !known || found.Version > version || len(rest) == 0 && (found.Late || !found.standsAlone()) {
		return Injection{}, false
	}
	read, ok := Injection{Kind: Kind(word)}, true
	switch {
	case found.Late:
		read.Longest, ok = milliseconds(rest[0])
		rest = rest[1:]
	case !found.standsAlone():
		ok = found.takes(rest[0])
		read.Kind, rest = Kind(word+":"+rest[0]), rest[1:]
	}
	if !ok || len(rest) == 0 {
		return read, ok
	}
	if len(rest) > 1 || !strings.HasPrefix(rest[0], "n") {
		return Injection{}, false
	}
	read.First, ok = count(rest[0][1:])
	return read, ok
}

func (r record) standsAlone() bool { return r.Argument == nil || r.Argument.Optional }

// takes tells whether a kind can go on with this argument. Lengths are read by edges, and never sent.
func (r record) takes(argument string) bool {
	if r.Argument == nil {
		return false
	}
	if r.Argument.form != nil {
		return r.Argument.form.MatchString(argument)
	}
	return slices.Contains(r.Argument.Among, argument)
}

// milliseconds reads 1 to 9,999,999.
func milliseconds(text string) (time.Duration, bool) {
	number, ok := positive(text, 7)
	return time.Duration(number) * time.Millisecond, ok
}

// count reads 1 to 99.
func count(text string) (int, bool) { return positive(text, 2) }

// positive reads a number without a leading zero, of at most so many digits.
func positive(text string, digits int) (int, bool) {
	if text == "" || len(text) > digits || text[0] == '0' || !isDigits(text) {
		return 0, false
	}
	number, err := strconv.Atoi(text)
	return number, err == nil
}

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// isName tells whether text is 1 to longest characters of A-Z a-z 0-9 _ -.
func isName(text string, longest int) bool {
	if text == "" || len(text) > longest {
		return false
	}
	for i := range len(text) {
		if !isNameByte(text[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
