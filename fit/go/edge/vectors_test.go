package edge

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

type (
	edgeVectors struct {
		Marks  []struct{ Device, Mark string }
		Leases []struct {
			Document json.RawMessage
			Lease    *struct {
				Seconds float64
				Wanted  []string
				Claims  map[string][][2]string
			}
		}
		Features []requestVector
		Keys     string
		Contexts []struct {
			Experiment string
			Arm        fit.Arm
			Expires    int64
			Faults     []string
			Delay      int64 `json:"delay_ms"`
			Lot        string
			Value      *string
		}
		Lengths []struct {
			Fault, Lot   string
			Milliseconds int64
		}
		Baggage []struct {
			Header  string
			Values  []string
			Without string
		}
		Allowances [][]stepVector
	}
	requestVector struct {
		Method, Path, Query string
		Headers             [][2]string
		Wanted              []string
		Body                *string
		Features            features
	}
	featureVectors struct {
		Requests   []requestVector
		Predicates []struct {
			Conditions []conditionText
			Features   features
			Holds      bool
		}
	}
	stepVector struct {
		Do         string
		Members    map[string]*int64
		Experiment string
		Arm        fit.Arm
		Device     string
		Knew       bool
		Answer     json.RawMessage
		Urgent     bool
	}
)

func vectors[Kind any](t testing.TB, file string) Kind {
	t.Helper()
	var all Kind
	text, err := os.ReadFile(filepath.Join("..", "..", "protocol", "vectors", file))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMarksOfDevices(t *testing.T) {
	all := vectors[edgeVectors](t, "edge.json")
	if len(all.Marks) < 40 {
		t.Fatalf("only %d", len(all.Marks))
	}
	for _, each := range all.Marks {
		if got := fmt.Sprintf("%016x", uint64(markOf(each.Device))); got != each.Mark {
			t.Errorf("%q: %s, want %s", each.Device, got, each.Mark)
		}
	}
}

func TestLeasesAreReadAllOrNothingAndClaimTheSameDevices(t *testing.T) {
	all := vectors[edgeVectors](t, "edge.json")
	if len(all.Leases) < 60 {
		t.Fatalf("only %d", len(all.Leases))
	}
	for _, each := range all.Leases {
		read, err := readLease(each.Document)
		if each.Lease == nil {
			if !errors.Is(err, errRules) {
				t.Errorf("%s is read as %+v, %v", each.Document, read, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", each.Document, err)
			continue
		}
		claims := map[string][][2]string{}
		for _, device := range all.Marks {
			for _, found := range read.claims(markOf(device.Device)) {
				claims[device.Device] = append(claims[device.Device], [2]string{found.rule.experiment, string(found.arm)})
			}
		}
		wanted := slices.Sorted(maps.Keys(read.wanted))
		if read.seconds.Seconds() != each.Lease.Seconds || !slices.Equal(wanted, each.Lease.Wanted) ||
			!reflect.DeepEqual(claims, each.Lease.Claims) {
			t.Errorf("%s: %v, %v, %v; want %+v", each.Document, read.seconds, wanted, claims, each.Lease)
		}
	}
}

func TestWhatIsNoLeaseArmsNothing(t *testing.T) {
	for _, text := range []string{
		"", "{", "[]", "null", "7", `{"rules": NaN}`, `{"version":"v","lease_seconds":1,"rules":[]}{}`,
		"{\"version\":\"\xff\",\"lease_seconds\":1,\"rules\":[]}",
	} {
		if read, err := readLease([]byte(text)); !errors.Is(err, errRules) {
			t.Errorf("%q: %+v, %v", text, read, err)
		}
	}
}

func (v requestVector) read() features {
	wanted := map[string]bool{}
	for _, each := range v.Wanted {
		wanted[each] = true
	}
	return arrived{v.Method, v.Path, v.Query, func(yield func(string, string) bool) {
		for _, each := range v.Headers {
			if !yield(each[0], each[1]) {
				return
			}
		}
	}}.features(wanted)
}

func TestFeaturesOfRequestsWhoseBodyIsNotRead(t *testing.T) {
	requests := vectors[featureVectors](t, "features.json").Requests
	requests = append(requests, vectors[edgeVectors](t, "edge.json").Features...)
	count := 0
	for _, each := range requests {
		got := each.read()
		if each.Body != nil {
			if got["unread"] != "body" {
				t.Errorf("%+v: a body that could tell more is not said to be unread", each)
			}
			continue
		}
		count++
		if !maps.Equal(got, each.Features) {
			t.Errorf("%s %s?%s %q:\n%v, want\n%v", each.Method, each.Path, each.Query, each.Headers, got, each.Features)
		}
	}
	if count < 165 {
		t.Errorf("only %d", count)
	}
}

func TestWhichPredicatesHold(t *testing.T) {
	for _, each := range vectors[featureVectors](t, "features.json").Predicates {
		read, err := readPredicate(each.Conditions)
		if err != nil || read.holds(each.Features) != each.Holds {
			t.Errorf("%+v of %v: not %v, %v", read, each.Features, each.Holds, err)
		}
	}
}

func TestContextsAreSignedCharacterByCharacterAlike(t *testing.T) {
	all := vectors[edgeVectors](t, "edge.json")
	keys, err := fit.ParseKeys(all.Keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all.Contexts {
		what := stamp{
			experiment: each.Experiment, arm: each.Arm, expires: each.Expires, longest: each.Delay, lot: each.Lot,
		}
		for _, text := range each.Faults {
			one, err := parseFault(text)
			if err != nil {
				t.Fatal(err)
			}
			what.faults = append(what.faults, one)
		}
		got, err := what.sign(keys)
		if each.Value == nil {
			if err == nil {
				t.Errorf("%+v is signed as %s", each, got)
			}
		} else if got != *each.Value {
			t.Errorf("%q: %s, want %s (%v)", each.Faults, got, *each.Value, err)
		}
	}
}

func TestLengthsAreDrawnAlike(t *testing.T) {
	all := vectors[edgeVectors](t, "edge.json")
	if len(all.Lengths) < 300 {
		t.Fatalf("only %d", len(all.Lengths))
	}
	for _, each := range all.Lengths {
		one, err := parseFault(each.Fault)
		if got := one.milliseconds(maxDelay, each.Lot); err != nil || got != each.Milliseconds {
			t.Errorf("%s %q: %d ms, want %d (%v)", each.Fault, each.Lot, got, each.Milliseconds, err)
		}
	}
}

func TestOurEntriesInTheBaggage(t *testing.T) {
	for _, each := range vectors[edgeVectors](t, "edge.json").Baggage {
		values, without := fit.Entries(asSent(each.Header))
		for i, value := range values {
			values[i] = latin1(value)
		}
		if !slices.Equal(values, each.Values) || latin1(without) != each.Without {
			t.Errorf("%q: %q and %q, want %q and %q", each.Header, values, without, each.Values, each.Without)
		}
	}
}

// asSent writes text as a header has it, a byte for each character.
func asSent(text string) string {
	var sent []byte
	for _, letter := range text {
		sent = append(sent, byte(letter))
	}
	return string(sent)
}

func TestAllowancesCountAlike(t *testing.T) {
	for _, history := range vectors[edgeVectors](t, "edge.json").Allowances {
		var counted allowances
		var heard report
		for i, each := range history {
			if wrong := each.take(&counted, &heard); wrong != "" || counted.urgent() != each.Urgent {
				t.Fatalf("step %d, %+v: %s, urgent %v", i, each, wrong, counted.urgent())
			}
		}
	}
}

// take does a step, and returns what is wrong with the answer.
func (v stepVector) take(counted *allowances, heard *report) string {
	switch v.Do {
	case "renew":
		var rules []rule
		for _, name := range slices.Sorted(maps.Keys(v.Members)) {
			rules = append(rules, rule{experiment: name, members: v.Members[name]})
		}
		counted.renew(rules)
	case "admit":
		admitted, before := counted.admit(v.Experiment, v.Arm, markOf(v.Device))
		if before != v.Knew || fmt.Sprint(admitted) != string(v.Answer) {
			return fmt.Sprintf("admitted %v, before %v", admitted, before)
		}
	case "report":
		*heard = counted.report()
		used, control, wants := written(heard.counts)
		var want struct{ Used, Control, Wants string }
		if err := json.Unmarshal(v.Answer, &want); err != nil || want != struct{ Used, Control, Wants string }{used, control, wants} {
			return fmt.Sprintf("%q %q %q", used, control, wants)
		}
	case "settle":
		counted.settle(*heard)
		*heard = report{}
	default:
		return "no such step"
	}
	return ""
}

func TestDevicesAreThoseOfTheVectors(t *testing.T) {
	all := vectors[struct {
		Cases []struct {
			Setting, Trusted, Peer, Device string
			Headers                        [][2]string
		}
	}](t, "devices.json")
	if len(all.Cases) < 400 {
		t.Fatalf("only %d", len(all.Cases))
	}
	for _, each := range all.Cases {
		tells, _ := parseDevices(each.Setting, each.Trusted)
		got := tells.of(func(name string) (values []string) {
			for _, pair := range each.Headers {
				if pair[0] == name {
					values = append(values, pair[1])
				}
			}
			return values
		}, each.Peer)
		if got != each.Device {
			t.Errorf("%+v: it is %q", each, got)
		}
	}
}
