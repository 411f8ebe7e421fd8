package edge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// service is a control plane that streams offers, hands out leases and answers asks, as the test says.
type service struct {
	*httptest.Server
	t *testing.T

	mutex   sync.Mutex
	changed chan struct{} // closed when the rules change
	number  int
	rules   []any
	streams int
	polls   []url.Values
	asks    []askText
	answer  func(ask askText, version string) (any, time.Duration)
}

func newService(t *testing.T) *service {
	t.Helper()
	made := &service{t: t, changed: make(chan struct{})}
	made.granting(true)
	routes := http.NewServeMux()
	routes.HandleFunc("GET /api/v1/edge/rules", made.serveRules)
	routes.HandleFunc("POST /api/v1/edge/asks", made.serveAsk)
	made.Server = httptest.NewServer(routes)
	t.Cleanup(func() {
		made.CloseClientConnections()
		made.Close()
	})
	return made
}

// arm puts rules in force: members by experiment, half of all devices in each arm.
func (s *service) arm(members map[string]any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.rules = []any{}
	for experiment, each := range members {
		s.rules = append(s.rules, map[string]any{
			"experiment": experiment, "salt": experiment, "predicate": json.RawMessage(ofTitles), "delay_ms": 1000,
			"treatment": 0.5, "control": 0.5, "faults": []string{"refused@" + point}, "members": each,
		})
	}
	s.number++
	close(s.changed)
	s.changed = make(chan struct{})
}

// granting has every ask answered alike, at once.
func (s *service) granting(granted bool) {
	s.answering(func(_ askText, version string) (any, time.Duration) {
		return map[string]any{"granted": granted, "lease_seconds": 5, "version": version}, 0
	})
}

func (s *service) answering(answer func(askText, string) (any, time.Duration)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answer = answer
}

func (s *service) document(seconds float64) ([]byte, string, chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	version := fmt.Sprintf("epoch-%d", s.number)
	text, _ := json.Marshal(map[string]any{
		"version": version, "lease_seconds": seconds, "asks": true, "rules": s.rules,
	})
	return text, version, s.changed
}

func (s *service) serveRules(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") == acceptBoth {
		s.stream(w, r)
		return
	}
	s.mutex.Lock()
	s.polls = append(s.polls, r.URL.Query())
	s.mutex.Unlock()
	if _, version, changed := s.document(5); version == r.URL.Query().Get("version") {
		wait, _ := time.ParseDuration(r.URL.Query().Get("wait") + "s")
		select {
		case <-changed:
		case <-time.After(wait):
		case <-r.Context().Done():
		}
	}
	text, _, _ := s.document(5)
	_, _ = w.Write(text)
}

func (s *service) stream(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.streams++
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for {
		text, _, changed := s.document(0)
		_, _ = fmt.Fprintf(w, ": hello\r\nevent: rules\r\ndata: %s\r\n\r\n", text)
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *service) serveAsk(w http.ResponseWriter, r *http.Request) {
	var asked askText
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		s.t.Error(err)
	}
	_, version, _ := s.document(0)
	s.mutex.Lock()
	s.asks = append(s.asks, asked)
	answer, takes := s.answer(asked, version)
	s.mutex.Unlock()
	time.Sleep(takes)
	if status, failed := answer.(int); failed {
		w.WriteHeader(status)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// told returns what the last poll said, and how many there were.
func (s *service) told() (url.Values, int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.polls) == 0 {
		return url.Values{}, 0
	}
	return s.polls[len(s.polls)-1], len(s.polls)
}

func (s *service) asked() []askText {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]askText(nil), s.asks...)
}

// edge returns an edge of this service that knows its rules. It is patient, for the machine may have much to do.
func (s *service) edge() *Edge {
	s.t.Helper()
	made, err := New(Config{Keys: keysOf(s.t), URL: s.URL, Token: "t"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(made.Close)
	made.poll.asks.within = 5 * time.Second
	made.poll.start()
	s.held(made)
	return made
}

func (s *service) held(e *Edge) {
	s.t.Helper()
	_, version, _ := s.document(0)
	eventually(s.t, "the edge knows the rules", func() bool { return e.poll.known.rules().version == version })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never holds that %s", what)
		}
	}
}

// device returns the nth device that falls in an arm of an experiment.
func device(experiment string, arm fit.Arm, nth int) string {
	for number := 0; ; number++ {
		name := fmt.Sprintf("d%d", number)
		if claimOf(experiment, 0.5, 0.5).armOf(markOf(name)) != arm {
			continue
		}
		if nth--; nth < 0 {
			return name
		}
	}
}

func stampOf(t *testing.T, e *Edge, device string) *fit.FailureContext {
	t.Helper()
	return readOf(t, onward(e, asked("/titles/17", DeviceHeader, device)))
}
