package fit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Entry is the name of the baggage entry that holds a failure context.
const Entry = "fit"

// MaxLength is the most characters that a failure context has. OpenTelemetry's SDKs drop an entry
// that with its name exceeds 4,096.
const MaxLength = 4096 - len(Entry+"=")

const (
	hashLength    = 8
	maxExperiment = 64
	maxExpiry     = 12 // digits

	// longest is how far ahead an expiry may lie: an hour, which is the most that anybody asks
	// for, and a minute for clocks that differ. Whoever gets hold of a signed context cannot use
	// it for years.
	longest = 3660 * time.Second
)

// What a reader finds wrong with a context that it must not obey; [Decode] wraps one of them.
var (
	ErrMalformed = errors.New("malformed failure context")
	ErrForged    = errors.New("forged failure context")
	ErrExpired   = errors.New("expired failure context")
)

// Arm is the group of an experiment that a request belongs to.
type Arm string

// In the treatment arm faults fire; in the control arm each point records that they would have.
const (
	Treatment Arm = "treatment"
	Control   Arm = "control"
)

// FailureContext is a verified one: what travels with a request and says which of its calls fail.
type FailureContext struct {
	Experiment string
	Arm        Arm
	Expires    time.Time
	Injections map[string]Injection // by hash of the point's name

	came atomic.Bool // with a request that this process served
}

// Decode verifies and reads a failure context. The MAC is checked before anything
// else is believed.
func Decode(keys *Keys, value string, now time.Time) (*FailureContext, error) {
	return decode(keys, value, now, 0)
}

// decode reads it although it has expired, by less than grace; whoever gives any has to look at Expires.
func decode(keys *Keys, value string, now time.Time, grace time.Duration) (*FailureContext, error) {
	if len(value) > MaxLength {
		return nil, fmt.Errorf("%w: %d characters", ErrMalformed, len(value))
	}
	parts := strings.Split(value, ".")
	if len(parts) != 7 {
		return nil, fmt.Errorf("%w: %d parts", ErrMalformed, len(parts))
	}
	version, id, experiment, arm, expiry, listed, mac :=
		parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]
	number, ok := positive(version, 1)
	if !ok || number > latestVersion {
		return nil, fmt.Errorf("%w: its version is none of 1 to %d", ErrMalformed, latestVersion)
	}
	expires, ok := expiryOf(expiry)
	if !ok || !isName(id, maxKeyID) || !isName(experiment, maxExperiment) || (arm != "t" && arm != "c") ||
		len(mac) != macLength || !isName(mac, macLength) {
		return nil, fmt.Errorf("%w: not of the grammar", ErrMalformed)
	}
	faults, ok := faultsOf(number, listed)
	if !ok {
		return nil, fmt.Errorf("%w: its faults are not of the grammar", ErrMalformed)
	}
	if !keys.verify(value[:len(value)-macLength-1], id, mac) {
		return nil, fmt.Errorf("%w: of key %s", ErrForged, id)
	}
	if !expires.Add(grace).After(now) {
		return nil, fmt.Errorf("%w: it ended at %d", ErrExpired, expires.Unix())
	}
	if expires.Sub(now) > longest {
		return nil, fmt.Errorf("%w: it is said to be good until %d", ErrExpired, expires.Unix())
	}
	injections, err := byPoint(faults)
	if err != nil {
		return nil, err
	}
	read := &FailureContext{Experiment: experiment, Arm: Treatment, Expires: expires, Injections: injections}
	if arm == "c" {
		read.Arm = Control
	}
	return read, nil
}

// over tells whether it has run out.
func (c *FailureContext) over() bool { return !c.Expires.After(time.Now()) }

// At finds what shall happen, or in the control arm would happen, at the point of this name.
func (c *FailureContext) At(point string) (Injection, bool) {
	found, ok := c.Injections[PointHash(point)]
	return found, ok
}

func expiryOf(text string) (time.Time, bool) {
	if text == "0" {
		return time.Unix(0, 0), true
	}
	if text == "" || len(text) > maxExpiry || text[0] == '0' || !isDigits(text) {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// fault is an injection and the hash of the point where it happens.
type fault struct {
	hash string
	Injection
}

func byPoint(faults []fault) (map[string]Injection, error) {
	found := make(map[string]Injection, len(faults))
	for _, each := range faults {
		if _, twice := found[each.hash]; twice {
			return nil, fmt.Errorf("%w: two faults at point %s", ErrMalformed, each.hash)
		}
		found[each.hash] = each.Injection
	}
	return found, nil
}

// faultsOf reads a list of faults in the notation of its version.
func faultsOf(version int, listed string) ([]fault, bool) {
	if listed == "" {
		return nil, true
	}
	parts := strings.Split(listed, "~")
	if version == 1 {
		return ungrouped(parts)
	}
	return grouped(version, parts)
}

func ungrouped(parts []string) ([]fault, bool) {
	faults := make([]fault, 0, len(parts))
	for _, part := range parts {
		if len(part) < 1+hashLength || !isName(part[1:1+hashLength], hashLength) {
			return nil, false
		}
		one, suffix := fault{hash: part[1 : 1+hashLength]}, part[1+hashLength:]
		number, first, counted := strings.Cut(suffix, "n")
		ok := true
		switch part[0] {
		case 'e':
			one.Kind, ok = Error, number == ""
		case 'd':
			one.Kind = Delay
			one.Longest, ok = milliseconds(number)
		default:
			return nil, false
		}
		if counted && ok {
			one.First, ok = count(first)
		}
		if !ok {
			return nil, false
		}
		faults = append(faults, one)
	}
	return faults, true
}

func grouped(version int, parts []string) ([]fault, bool) {
	if len(parts)%2 != 0 {
		return nil, false
	}
	var faults []fault
	for i := 0; i < len(parts); i += 2 {
		injection, ok := injectionOf(version, parts[i])
		hashes := parts[i+1]
		if !ok || len(hashes)%hashLength != 0 || !isName(hashes, MaxLength) {
			return nil, false
		}
		for at := 0; at < len(hashes); at += hashLength {
			faults = append(faults, fault{hashes[at : at+hashLength], injection})
		}
	}
	return faults, true
}
