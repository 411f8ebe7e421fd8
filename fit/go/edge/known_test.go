package edge

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func knowing() *known {
	made := &known{allowances: &allowances{}}
	made.latest.Store(quiet)
	return made
}

func of(version string) *lease {
	return &lease{version: version, rules: []rule{{experiment: "of-" + version}}}
}

func TestOlderRulesNeverReplaceNewerOnes(t *testing.T) {
	later := steady() + time.Minute
	for _, each := range []struct {
		name  string
		first func(k *known)
		then  func(k *known)
		want  string
	}{
		{"an older offer", func(k *known) { k.lease(of("e-10"), later) }, func(k *known) { k.offer(of("e-9")) }, "e-10"},
		{"a newer offer", func(k *known) { k.lease(of("e-9"), later) }, func(k *known) { k.offer(of("e-10")) }, "e-10"},
		{"an older lease", func(k *known) { k.offer(of("e-10")) }, func(k *known) { k.lease(of("e-9"), later) }, "e-10"},
		{"a newer lease", func(k *known) { k.offer(of("e-9")) }, func(k *known) { k.lease(of("e-10"), later) }, "e-10"},
		{"another epoch", func(k *known) { k.offer(of("e-9")) }, func(k *known) { k.lease(of("f-1"), later) }, "f-1"},
		{"no number", func(k *known) { k.offer(of("v")) }, func(k *known) { k.lease(of("w"), later) }, "w"},
	} {
		k := knowing()
		each.first(k)
		each.then(k)
		if got := k.rules().version; got != each.want {
			t.Errorf("%s: %s, want %s", each.name, got, each.want)
		}
	}
}

func TestWhatIsOfferedIsInForceForAsLongAsWhatWasBefore(t *testing.T) {
	k := knowing()
	k.offer(of("e-1"))
	if k.rules().version != "e-1" || k.rules().inForce() {
		t.Error("an offer is not known, or in force")
	}
	ends := steady() + time.Minute
	if granted := k.grant("e-1", ends); granted == nil || granted.ends != ends || k.rules() != granted {
		t.Errorf("%+v", granted)
	}
	if k.grant("e-1", ends-1); k.rules().ends != ends {
		t.Error("a grant has made the lease shorter")
	}
	if k.offer(of("e-2")); !k.rules().inForce() || k.rules().version != "e-2" {
		t.Error("the lease is lost with a newer offer")
	}
	k.withdraw()
	if k.rules().version != "e-2" {
		t.Error("what is in force is lost with the stream")
	}
	k.lapse()
	if k.rules() != quiet {
		t.Error("it holds on without stream or lease")
	}
	k.close()
	if k.offer(of("e-3")); k.rules() != quiet || k.grant("", ends) != nil {
		t.Error("it is closed, and learns on")
	}
}

func TestAnOfferGivesNoAllowance(t *testing.T) {
	counted, three := &allowances{}, int64(3)
	counted.offer([]rule{{experiment: "e1", members: &three}, {experiment: "e2"}})
	for _, experiment := range []string{"e1", "e2"} {
		if admitted, _ := counted.admit(experiment, "control", 1); admitted || counted.usedUp(asking{experiment, "control", 1}) {
			t.Errorf("%s enrols, or asks", experiment)
		}
	}
	counted.renew([]rule{{experiment: "e1", members: &three}})
	counted.offer([]rule{{experiment: "e1", members: new(int64)}})
	if admitted, _ := counted.admit("e1", "treatment", 1); !admitted {
		t.Error("what was given is taken back")
	}
}

func TestEventsAreRead(t *testing.T) {
	event := func(version string) string {
		return "data: {\"version\":\"" + version + "\",\ndata:\"lease_seconds\":0,\"asks\":true,\"rules\":[]}\n\n"
	}
	for name, each := range map[string]struct {
		stream, version string
		failure         error
	}{
		"two":           {event("e-1") + ":\n\n\n" + event("e-2"), "e-2", nil},
		"other fields":  {"id: 1\r\nretry:5\r\nnothing\r\n" + strings.ReplaceAll(event("e-1"), "\n", "\r\n"), "e-1", nil},
		"half an event": {strings.TrimSuffix(event("e-1"), "\n"), "", errEmpty},
		"none":          {":\n\n", "", errEmpty},
		"no rules":      {event("e-1") + "data: {}\n\n", "e-1", errRules},
		"a long line":   {"data: " + strings.Repeat(" ", maxAnswer) + "\n\n", "", errRules},
		"many lines":    {strings.Repeat("data:"+strings.Repeat(" ", 1000)+"\n", maxAnswer/999), "", errRules},
	} {
		polled := newPoll("http://127.0.0.1:9", "t")
		err := (&line{poll: polled}).follow(io.NopCloser(strings.NewReader(each.stream)))
		if !errors.Is(err, each.failure) || polled.known.latest.Load().version != each.version {
			t.Errorf("%s: %v, %q", name, err, polled.known.latest.Load().version)
		}
		polled.close()
	}
}

func TestAStreamIsOpenedAnewAndItsOffersGoWithIt(t *testing.T) {
	s := newService(t)
	s.arm(map[string]any{"e1": 0})
	e := s.edge()
	s.CloseClientConnections()
	eventually(t, "the offers are dropped", func() bool { return e.poll.known.rules() == quiet })
	s.held(e)
	s.arm(map[string]any{"e2": 0})
	s.held(e)
	if s.streams != 2 {
		t.Errorf("%d streams", s.streams)
	}
}

func TestALeaseOfAnotherEpochHasTheStreamOpenedAnew(t *testing.T) {
	polled := newPoll("http://127.0.0.1:9", "t")
	t.Cleanup(polled.close)
	read, write := io.Pipe()
	ended := make(chan error)
	go func() { ended <- (&line{poll: polled}).follow(read) }()
	_, _ = io.WriteString(write, `data: {"version":"e-9","lease_seconds":0,"asks":true,"rules":[]}`+"\n\n:\n")
	eventually(t, "the offer is known", func() bool { return polled.known.rules().version == "e-9" })
	polled.known.lease(of("f-1"), steady()+time.Minute)
	_, _ = io.WriteString(write, ":\n")
	if err := <-ended; !errors.Is(err, errEpoch) {
		t.Error(err)
	}
}
