package edge

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

func TestADeviceOfEitherArmIsAskedForAndStampedWhenItIsGranted(t *testing.T) {
	for _, arm := range []fit.Arm{fit.Treatment, fit.Control} {
		t.Run(string(arm), func(t *testing.T) {
			s := newService(t)
			s.arm(map[string]any{"e1": 0})
			e := s.edge()
			for range 3 { // a device that is enrolled is asked for no more
				read := stampOf(t, e, device("e1", arm, 0))
				if read == nil || read.Arm != arm || time.Until(read.Expires) > 6*time.Second {
					t.Fatalf("%+v", read)
				}
			}
			want := askText{e.poll.edge, "e1", arm, 1, "epoch-1"}
			if got := s.asked(); len(got) != 1 || got[0] != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			parameter := map[fit.Arm]string{fit.Treatment: "used", fit.Control: "control"}[arm]
			eventually(t, "it is told", func() bool {
				told, _ := s.told()
				return told.Get(parameter) == "e1:1" && told.Get("asked") == "1"
			})
			if told, _ := s.told(); told.Get("wants") != "" {
				t.Errorf("who can be asked is told who is wanted: %v", told)
			}
		})
	}
}

func TestOffersAloneStampNobodyAndWithNobodyEnrolledNothingIsPolled(t *testing.T) {
	s := newService(t)
	s.granting(false)
	s.arm(map[string]any{"e1": 0})
	e := s.edge()
	if read := stampOf(t, e, device("e1", fit.Treatment, 0)); read != nil {
		t.Errorf("%+v", read)
	}
	eventually(t, "the ask is told to be settled", func() bool { told, _ := s.told(); return told.Get("asked") == "1" })
	_, before := s.told()
	time.Sleep(1500 * time.Millisecond)
	if _, polls := s.told(); polls > before+1 || s.streams != 1 { // one may have been under way
		t.Errorf("%d polls after %d, %d streams", polls, before, s.streams)
	}
}

func TestAnAllowanceIsUsedBeforeAnybodyIsAskedFor(t *testing.T) {
	s := newService(t)
	s.granting(false)
	s.arm(map[string]any{"e1": 1})
	e := s.edge()
	eventually(t, "a lease has come", func() bool { return e.poll.known.rules().inForce() })
	for i, want := range []bool{true, false} {
		if read := stampOf(t, e, device("e1", fit.Treatment, i)); (read != nil) != want {
			t.Errorf("device %d: %+v", i, read)
		}
	}
	if got := s.asked(); len(got) != 1 || got[0].Arm != fit.Treatment {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNoGrantStampsNobody(t *testing.T) {
	granted := func(version string) map[string]any {
		return map[string]any{"granted": true, "lease_seconds": 5, "version": version}
	}
	for name, each := range map[string]struct {
		answer any
		takes  time.Duration
		late   bool
	}{
		"refused":         {map[string]any{"granted": false, "lease_seconds": 0, "version": "epoch-1"}, 0, false},
		"other rules":     {granted("epoch-2"), 0, false},
		"late":            {granted("epoch-1"), 60 * time.Millisecond, true},
		"failing":         {http.StatusServiceUnavailable, 0, true},
		"no document":     {[]any{}, 0, true},
		"without a lease": {map[string]any{"granted": true, "version": "epoch-1"}, 0, true},
		"lease of less":   {map[string]any{"granted": true, "lease_seconds": -1, "version": "epoch-1"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.answering(func(askText, string) (any, time.Duration) { return each.answer, each.takes })
			s.arm(map[string]any{"e1": 0})
			e := s.edge()
			if each.takes > 0 {
				e.poll.asks.within = each.takes / 2
			}
			began := time.Now()
			for range 3 {
				if read := stampOf(t, e, device("e1", fit.Treatment, 0)); read != nil {
					t.Errorf("%+v", read)
				}
				time.Sleep(40 * time.Millisecond) // also when the answer has come
			}
			eventually(t, "the ask is told to be settled", func() bool { told, _ := s.told(); return told.Get("asked") != "0" })
			told, _ := s.told()
			if each.late != (told.Get("late") != "0") || told.Get("used") != "" {
				t.Errorf("%v", told)
			}
			if rests := time.Since(began) < failedFor; rests && each.late && len(s.asked()) != 1 {
				t.Errorf("%d asks, although the first one failed", len(s.asked()))
			}
		})
	}
}

func TestNoRequestWaitsLongerThanForAnAnswerInTime(t *testing.T) {
	s := newService(t)
	s.answering(func(_ askText, version string) (any, time.Duration) {
		return map[string]any{"granted": true, "lease_seconds": 5, "version": version}, strayWithin / 2
	})
	s.arm(map[string]any{"e1": 0})
	e := s.edge()
	e.poll.asks.within = grantWithin
	began := time.Now()
	var all sync.WaitGroup
	for i := range 40 { // more than can be asked for at once
		all.Add(1)
		go func() {
			defer all.Done()
			if stampOf(t, e, device("e1", fit.Control, i)) != nil {
				t.Error("it is stamped")
			}
		}()
	}
	all.Wait()
	if took := time.Since(began); took > strayWithin/2 { // on a machine with much to do
		t.Errorf("they waited %s", took)
	}
	if told := e.poll.allowances.report(); told.late != 40 {
		t.Errorf("late are %d", told.late)
	}
}

func TestFailuresAreLetRestForLongerAndLonger(t *testing.T) {
	a := newAsks()
	whom := asking{"e1", fit.Control, 1}
	for _, want := range []time.Duration{250, 500, 1000, 1000} {
		began := steady()
		a.failed(began)
		a.failed(began) // together with the first
		if rest := (a.again - steady()).Round(50 * time.Millisecond); rest != want*time.Millisecond {
			t.Errorf("it rests for %s, not %d ms", rest, want)
		}
		if _, _, err := a.join(whom); err == nil {
			t.Error("it asks on")
		}
		a.again = 0
	}
	a.answered("e1", true)
	a.failed(steady())
	if rest := a.again - steady(); rest > failedFor {
		t.Errorf("after an answer it rests for %s", rest)
	}
}

func TestAsksThatComeAtOnceForOneDeviceAreOne(t *testing.T) {
	s := newService(t)
	s.answering(func(_ askText, version string) (any, time.Duration) {
		return map[string]any{"granted": true, "lease_seconds": 5, "version": version}, 5 * time.Millisecond
	})
	s.arm(map[string]any{"e1": 0})
	e := s.edge()
	whom := asking{"e1", fit.Treatment, markOf("d")}
	var first, granted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			if under, again := e.poll.ask("epoch-1", whom); under != nil {
				granted.Add(1)
				if !again {
					first.Add(1)
				}
			}
		}()
	}
	all.Wait()
	if asks := int64(len(s.asked())); first.Load() != asks || granted.Load() != 8 {
		t.Errorf("%d asks, %d of %d are the first", asks, first.Load(), granted.Load())
	}
	if told := e.poll.allowances.report(); told.counts[0].treatment != 1 {
		t.Errorf("%+v", told)
	}
}

func TestRulesThatHaveChangedMeanwhileMakeAGrantVoid(t *testing.T) {
	s := newService(t)
	s.arm(map[string]any{"e1": 0})
	e := s.edge()
	e.poll.known.offer(&lease{version: "epoch-2", asks: true})
	if under, _ := e.poll.ask("epoch-1", asking{"e1", fit.Treatment, 1}); under != nil {
		t.Error("a device is enrolled by rules that are no more")
	}
}

func TestAsksAreSaidToBeSettledWhenAllBeforeThemAreAndWhomTheyEnrolledIsReported(t *testing.T) {
	var counted allowances
	var rules []rule
	none := int64(0)
	for i := range 80 {
		rules = append(rules, rule{experiment: fmt.Sprintf("%02d-%s", i, strings.Repeat("x", 60)), members: &none})
	}
	counted.renew(rules)
	one, two, three := counted.ask(), counted.ask(), counted.ask()
	asked := func() int { return counted.report().asked }
	counted.settled(three, false, asking{})
	if asked() != 0 {
		t.Error("two are open")
	}
	counted.settled(one, true, asking{rules[0].experiment, fit.Control, 1})
	if asked() != 1 || !counted.hasNews() {
		t.Error("the second one is open")
	}
	counted.settled(two, false, asking{})
	if asked() != three {
		t.Error("none is open")
	}
	counted.settle(counted.report())
	for i := range rules { // more than a URL holds
		counted.settled(counted.ask(), true, asking{rules[i].experiment, fit.Control, 2})
	}
	if asked() != three {
		t.Error("it says that asks are settled, and leaves out whom they enrolled")
	}
}

func TestWhoCameWhileAReportWasUnderWayIsReportedEvenIfTheRuleHasLeftSince(t *testing.T) {
	var counted allowances
	counted.renew([]rule{{experiment: "e1"}})
	counted.admit("e1", fit.Treatment, 1)
	heard := counted.report()
	counted.admit("e1", fit.Treatment, 2)
	counted.offer(nil)
	counted.settle(heard)
	if used, _, _ := written(counted.report().counts); used != "e1:2" {
		t.Errorf("it reports %q", used)
	}
}

func TestAServiceWithoutStreamsIsPolledAsEver(t *testing.T) {
	questions := make(chan string, 9)
	older := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		questions <- r.Header.Get("Authorization") + " " + r.URL.String()
		_, _ = io.WriteString(w, `{"version":"v 1","lease_seconds":5,"rules":[{"experiment":"e1","salt":"s",
			"predicate":[],"treatment":1,"control":0,"faults":[],"delay_ms":1,"members":1}]}`)
	}))
	t.Cleanup(older.Close)
	polled := newPoll(older.URL+"/", "secret")
	t.Cleanup(polled.close)
	stream := &line{poll: polled}
	for _, want := range []string{
		"version=&wait=2&edge=E&used=&control=&wants=",
		"version=v+1&wait=1&edge=E&used=&control=&wants=",
		"version=v+1&wait=0&edge=E&used=e1:1&control=&wants=e1",
		"version=v+1&wait=1&edge=E&used=e1:1&control=&wants=e1",
	} {
		if err := stream.listen(); err != nil {
			t.Fatal(err)
		}
		got := strings.Replace(<-questions, polled.edge, "E", 1)
		if got != "Bearer secret /api/v1/edge/rules?"+want {
			t.Errorf("%s, want %s", got, want)
		}
		if strings.HasPrefix(want, "version=v+1&wait=1&edge=E&used=&") {
			enrolling := claimed{&rule{experiment: "e1"}, fit.Treatment}
			for device, want := range []bool{true, false} {
				if under, _ := polled.enrol(polled.known.rules(), enrolling, mark(device)); (under != nil) != want {
					t.Errorf("device %d: %v", device, under)
				}
			}
		}
	}
	if polled.due() {
		t.Error("leases are asked for twice")
	}
}
