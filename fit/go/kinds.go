package fit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is how a call fails, as its caller sees it: "refused", "status:503", "grpc:UNAVAILABLE".
type Kind string

// The kinds that stand alone. The others are "status:N", "grpc:CODE", "sql:STATE", "redis:STATE" and
// "exception:NAME".
const (
	Error     Kind = "error" // what the library does when the dependency is down
	Delay     Kind = "delay"
	Refused   Kind = "refused"
	Reset     Kind = "reset"
	Timeout   Kind = "timeout"
	Empty     Kind = "empty"
	Truncated Kind = "truncated"
	Corrupt   Kind = "corrupt"
	Slow      Kind = "slow" // the answer's body comes over a length of time; from version 3 on
)

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

// Status returns N of "status:N"; 0 for every other kind.
func (k Kind) Status() int {
	word, argument := k.Family()
	if word != "status" {
		return 0
	}
	status, _ := strconv.Atoi(argument)
	return status
}

const (
	maxException = 40 // characters of an exception's name
	grpcCodes    = " CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS" +
		" PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED" +
		" INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED "
	sqlStates   = " deadlock serialization lost readonly "
	redisStates = " loading readonly lost "
)

// ParseKind reads a kind as rules and marks write it, "refused" or "status:503".
func ParseKind(text string) (Kind, error) {
	kind := Kind(text)
	word, argument := kind.Family()
	if kind == Delay || kind == Timeout || standsAlone(kind) || takes(word, argument) {
		return kind, nil
	}
	return "", fmt.Errorf("%q is no kind of fault", text)
}

// injectionOf reads how a group of points fails in this version, as in "status-503-n2".
func injectionOf(version, how string) (Injection, bool) {
	parts := strings.Split(how, "-")
	kind, rest := Kind(parts[0]), parts[1:]
	var longest time.Duration
	switch {
	case kind == Slow && version == "2":
		return Injection{}, false
	case kind == Delay || kind == Timeout || kind == Slow:
		if len(rest) == 0 {
			return Injection{}, false
		}
		milliseconds, ok := milliseconds(rest[0])
		if !ok {
			return Injection{}, false
		}
		longest, rest = milliseconds, rest[1:]
	case standsAlone(kind):
	default:
		if len(rest) == 0 || !takes(parts[0], rest[0]) {
			return Injection{}, false
		}
		kind, rest = Kind(parts[0]+":"+rest[0]), rest[1:]
	}
	if len(rest) == 0 {
		return Injection{Kind: kind, Longest: longest}, true
	}
	if len(rest) > 1 || !strings.HasPrefix(rest[0], "n") {
		return Injection{}, false
	}
	first, ok := count(rest[0][1:])
	return Injection{Kind: kind, Longest: longest, First: first}, ok
}

func standsAlone(kind Kind) bool {
	switch kind {
	case Error, Refused, Reset, Empty, Truncated, Corrupt:
		return true
	}
	return false
}

// takes tells whether a kind that begins with word can go on with this argument.
func takes(word, argument string) bool {
	switch word {
	case "status":
		return len(argument) == 3 && isDigits(argument) && (argument[0] == '4' || argument[0] == '5')
	case "grpc":
		return among(argument, grpcCodes)
	case "sql":
		return among(argument, sqlStates)
	case "redis":
		return among(argument, redisStates)
	case "exception":
		return isName(argument, maxException) && !strings.Contains(argument, "-") &&
			(argument[0] < '0' || argument[0] > '9')
	}
	return false
}

func among(word, words string) bool {
	return word != "" && !strings.Contains(word, " ") && strings.Contains(words, " "+word+" ")
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
