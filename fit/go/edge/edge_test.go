package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

const (
	point    = "api>http:GET:ratings/titles/*"
	ofTitles = `[{"feature":"method","value":"GET","negated":false},
		{"feature":"route","value":"/titles/*","negated":false}]`
)

func keysOf(t testing.TB) *fit.Keys {
	t.Helper()
	keys, err := fit.ParseKeys(fittest.Key)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// given is an edge whose rules were given, not fetched: one that treats every device. More goes into the rule.
func given(t testing.TB, config Config, more map[string]any) *Edge {
	t.Helper()
	said := map[string]any{
		"experiment": "e1", "salt": "s", "predicate": json.RawMessage(ofTitles), "treatment": 1, "control": 0,
		"faults": []string{"refused@" + point}, "delay_ms": 1000,
	}
	for name, value := range more {
		said[name] = value
	}
	text, err := json.Marshal(map[string]any{"version": "v", "lease_seconds": 60, "rules": []any{said}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := readLease(text)
	if err != nil {
		t.Fatal(err)
	}
	config.Keys, config.URL, config.Token = keysOf(t), "http://127.0.0.1:9", "t"
	made, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	made.poll.begin.Do(func() {}) // it asks nobody
	made.poll.known.lease(read, steady()+read.seconds)
	t.Cleanup(made.Close)
	return made
}

func asked(target string, headers ...string) *http.Request {
	request := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return request
}

// onward returns the request as the edge's inside gets it.
func onward(e *Edge, request *http.Request) (got *http.Request) {
	e.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r })).
		ServeHTTP(httptest.NewRecorder(), request)
	return got
}

func readOf(t testing.TB, request *http.Request) *fit.FailureContext {
	t.Helper()
	value, found := fit.FindEntry(header(request, "Baggage"))
	if !found {
		return nil
	}
	read, err := fit.Decode(keysOf(t), value, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestARequestOfTheClassIsStamped(t *testing.T) {
	e := given(t, Config{}, nil)
	foreign := fittest.Sign('t')
	request := asked("/titles/17?page=2", DeviceHeader, "d1", "Baggage", "a=b,fit="+foreign)
	got := onward(e, request)
	read := readOf(t, got)
	if read == nil || read.Experiment != "e1" || read.Arm != fit.Treatment {
		t.Fatalf("%v: %+v", got.Header, read)
	}
	if injection, ok := read.At(point); !ok || injection.Kind != fit.Refused {
		t.Errorf("it is stamped with %+v", read)
	}
	if baggage := got.Header.Get("Baggage"); !strings.HasPrefix(baggage, "fit=") || !strings.HasSuffix(baggage, ",a=b") {
		t.Errorf("baggage %s", baggage)
	}
	if request.Header.Get("Baggage") != "a=b,fit="+foreign {
		t.Error("the request that came in was changed")
	}
	for name, other := range map[string]*http.Request{
		"another class": asked("/basket", DeviceHeader, "d1"),
		"no device":     asked("/titles/17"),
		"an upgrade":    asked("/titles/17", DeviceHeader, "d1", "Upgrade", "websocket"),
		"too long":      asked("/titles/17", DeviceHeader, "d1", "Baggage", "a="+strings.Repeat("b", 8150)),
	} {
		before := other.Header.Get("Baggage")
		if after := onward(e, other).Header.Get("Baggage"); after != before {
			t.Errorf("%s goes on with %s", name, after)
		}
	}
}

func TestAProxyInsideTakesNothingOutThatTheEdgePutIn(t *testing.T) {
	e, passed := given(t, Config{}, nil), ""
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		passed = r.Header.Get("Baggage")
	}))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	inside := httputil.NewSingleHostReverseProxy(to)
	for _, listed := range [][]string{{"baggage"}, {"close, Baggage ,x-own"}, {"keep-alive", "BAGGAGE,"}} {
		request := asked("/titles/17", DeviceHeader, "d1", "X-Own", "1")
		request.Header["Connection"] = listed
		e.Handler(inside).ServeHTTP(httptest.NewRecorder(), request)
		if !strings.HasPrefix(passed, "fit=") {
			t.Errorf("Connection: %q leaves %q", listed, passed)
		}
		if !slices.Equal(request.Header["Connection"], listed) {
			t.Error("the request that came in was changed")
		}
		passed = ""
	}
	request := asked("/titles/17", DeviceHeader, "d1", "Connection", "close, baggage,x-own")
	if got := onward(e, request).Header.Get("Connection"); got != "close,x-own" {
		t.Errorf("it goes on with Connection: %q", got)
	}
}

func TestBelowAPrefixThatIsStrippedTheWholePathCounts(t *testing.T) {
	e := given(t, Config{}, nil)
	var got *http.Request
	inside := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r })
	http.StripPrefix("/titles", e.Handler(inside)).
		ServeHTTP(httptest.NewRecorder(), asked("/titles/17?q=1", DeviceHeader, "d1"))
	if readOf(t, got) == nil {
		t.Error("it is not stamped")
	}
	absolute := asked("http://shop:80/titles/17", DeviceHeader, "d1")
	if readOf(t, onward(e, absolute)) == nil {
		t.Error("an absolute target is not stamped")
	}
}

func TestContextsFromOutsideGoWhateverTheEdgeIs(t *testing.T) {
	var none *Edge
	halted, _ := New(Config{Keys: keysOf(t), Halted: true})
	for name, e := range map[string]*Edge{"nil": none, "without rules": halted} {
		request := asked("/", DeviceHeader, "d1", "Baggage", "a=b,fit="+fittest.Sign('t'), "Baggage", "FIT=1,c=d")
		if got := onward(e, request).Header["Baggage"]; !slices.Equal(got, []string{"a=b,c=d"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	none.Close()
}

func TestAnEngineersOwnContextStays(t *testing.T) {
	e := given(t, Config{}, nil)
	what := stamp{experiment: scenarioOf("mine"), arm: fit.Treatment, expires: time.Now().Unix() + 60}
	own, err := what.sign(keysOf(t))
	if err != nil {
		t.Fatal(err)
	}
	for device, want := range map[string]string{"mine": scenarioOf("mine"), "hers": "e1"} {
		got := onward(e, asked("/titles/17", DeviceHeader, device, "Baggage", "fit="+own))
		if read := readOf(t, got); read == nil || read.Experiment != want {
			t.Errorf("%s: %+v", device, read)
		}
	}
}

type answering struct{}

func (answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// Also where the service has no handler of ours.
func TestWhatARequestLeavesBehindIsLetThrough(t *testing.T) {
	service := fittest.New(t, "api")
	client := service.Transport(answering{})
	var left context.Context
	call := func(ctx context.Context) error {
		request, _ := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://ratings/titles/17", nil)
		_, err := client.RoundTrip(request)
		return err
	}
	var within error
	handler := given(t, Config{}, nil).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		left, within = r.Context(), call(r.Context())
	}))
	handler.ServeHTTP(httptest.NewRecorder(), asked("/titles/17", DeviceHeader, "d1"))
	if after := call(left); within == nil || after != nil {
		t.Errorf("within %v, after it %v", within, after)
	}
}

func TestALeaseThatHasRunOutStampsNothing(t *testing.T) {
	e := given(t, Config{}, nil)
	now := e.poll.known.latest.Load().lease
	request := func() *fit.FailureContext {
		return readOf(t, onward(e, asked("/titles/17", DeviceHeader, "d1")))
	}
	if read := request(); read == nil || time.Until(read.Expires) > 61*time.Second {
		t.Fatalf("%+v", read)
	}
	e.poll.known.lease(now, steady()-1)
	if request() != nil {
		t.Error("it has run out, and stamps")
	}
	e.poll.known.lease(now, steady()+time.Minute)
	if request() == nil {
		t.Error("it has come back, and does not stamp")
	}
	e.Close()
	e.poll.known.lease(now, steady()+time.Minute)
	if request() != nil {
		t.Error("it is closed, and stamps")
	}
}

func TestAFileHalts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "halt")
	e := given(t, Config{HaltFile: file}, nil)
	stamps := func() bool { return readOf(t, onward(e, asked("/titles/17", DeviceHeader, "d1"))) != nil }
	for _, want := range []bool{true, false, true} {
		if !want {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = os.Remove(file)
		}
		time.Sleep(lookEvery + 20*time.Millisecond)
		if stamps() != want {
			t.Errorf("stamps %v, want %v", !want, want)
		}
	}
}

func TestAFileThatCannotBeThereHaltsNobody(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, each := range []string{filepath.Join(file, "below"), "\x00"} {
		if stops := (&halt{file: each}); stops.holds() {
			t.Errorf("%q halts", each)
		}
	}
}

func TestLengthsAreDrawnAnewForEachRequest(t *testing.T) {
	e := given(t, Config{}, map[string]any{"faults": []string{"delay:0.1..0.9@" + point}})
	seen := map[time.Duration]bool{}
	for range 20 {
		injection, _ := readOf(t, onward(e, asked("/titles/17", DeviceHeader, "d1"))).At(point)
		if injection.Longest < 100*time.Millisecond || injection.Longest > 900*time.Millisecond {
			t.Errorf("%+v", injection)
		}
		seen[injection.Longest] = true
	}
	if len(seen) < 10 {
		t.Errorf("only %d lengths", len(seen))
	}
}

func TestManyAtOnceNeverExceedTheAllowanceNorMixUp(t *testing.T) {
	e := given(t, Config{}, map[string]any{"members": 7})
	var stamped atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Add(1)
		go func() {
			defer all.Done()
			mine := fmt.Sprintf("n=%d", i)
			got := onward(e, asked("/titles/17", DeviceHeader, fmt.Sprint(i), "Baggage", mine))
			baggage := got.Header.Get("Baggage")
			if strings.HasPrefix(baggage, "fit=") {
				stamped.Add(1)
			}
			if baggage != mine && !strings.HasSuffix(baggage, ","+mine) {
				t.Errorf("%s goes on with %s", mine, baggage)
			}
		}()
	}
	all.Wait()
	if stamped.Load() != 7 {
		t.Errorf("%d devices were treated, want 7", stamped.Load())
	}
}

func TestWhateverBreaksWhileItDecidesTheRequestGoesOn(t *testing.T) {
	e := given(t, Config{}, nil)
	e.poll.known.latest.Store(nil)
	got := onward(e, asked("/titles/17", DeviceHeader, "d1", "Baggage", "a=b,fit=1"))
	if got == nil || got.Header.Get("Baggage") != "a=b" {
		t.Errorf("%+v", got)
	}
}

// TestTheSamplerKeepsWhatIsStampedAndMarksWhatComesIn has the edge outside of OpenTelemetry's instrumentation,
// and devices that want nothing sampled.
func TestTheSamplerKeepsWhatIsStampedAndMarksWhatComesIn(t *testing.T) {
	e := given(t, Config{Features: "header.x-plan,cookie.ab"}, nil)
	service := fittest.New(t, "front")
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans),
		sdk.WithSampler(service.Sampler(sdk.ParentBased(sdk.NeverSample()))))
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	var armed bool
	inside := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { armed = service.Armed(r.Context()) })
	traced := e.Handler(otelhttp.NewHandler(service.Handler(inside), "server",
		otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(both)))
	marks := func(request *http.Request) map[string]string {
		spans.Reset()
		request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
		traced.ServeHTTP(httptest.NewRecorder(), request)
		found := map[string]string{}
		for _, span := range spans.GetSpans() {
			for _, each := range span.Attributes {
				if name := string(each.Key); strings.HasPrefix(name, "fit.") || name == "url.query" {
					found[name] = fmt.Sprint(each.Value.AsInterface())
				}
			}
		}
		return found
	}
	first := marks(asked("/titles/17?page=2", DeviceHeader, "d1", "X-Plan", "gold", "Baggage", "odd=\xe9,fit=1"))
	want := map[string]string{"fit.edge": "true", "fit.feature.header.x-plan": "gold", "fit.experiment": "e1",
		"fit.arm": "treatment", "url.query": "page=2"}
	if fmt.Sprint(first) != fmt.Sprint(want) || !armed {
		t.Errorf("%v, want %v; armed %v", first, want, armed)
	}
	if again := marks(asked("/titles/17", DeviceHeader, "d1")); again["fit.again"] != "true" {
		t.Errorf("the second time %v", again)
	}
	if other := marks(asked("/basket", DeviceHeader, "d1")); len(other) != 0 || armed {
		t.Errorf("what is not under experiment is kept: %v", other)
	}
}

func TestTheConfigurationIsSaidToBeWrongAndDoneWithout(t *testing.T) {
	for name, value := range map[string]string{
		"LDFI_URL": "ldfi:8000", "FIT_KEYS": "short", "FIT_FEATURES": "header.authorization",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FIT_KEYS", fittest.Key)
			t.Setenv("LDFI_URL", "http://127.0.0.1:9")
			t.Setenv("LDFI_TOKEN", "t")
			t.Setenv(name, value)
			e, err := FromEnv()
			if err == nil || e == nil || strings.Contains(err.Error(), "0123456789abcdef") {
				t.Fatalf("%v, %v", e, err)
			}
			t.Cleanup(e.Close)
			if (e.poll != nil) != (name == "FIT_FEATURES") || len(e.told) != 0 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// Announced or not, and also where an edge does nothing else.
func TestBaggageBehindABodyIsTakenOut(t *testing.T) {
	for name, e := range map[string]*Edge{"stamps": given(t, Config{}, nil), "does nothing": nil} {
		server := httptest.NewServer(e.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s, %v, %q, %q", body, err, r.Trailer["Baggage"], r.Trailer["X-Sum"])
		})))
		defer server.Close()
		for _, announced := range []string{"", "Trailer: X-Sum\r\n", "Trailer: baggage, X-Sum\r\n"} {
			connection, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(connection, "POST / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n"+announced+
				"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nbaggage: fit=1\r\nx-sum: 7\r\n\r\n")
			answer, _ := io.ReadAll(connection)
			_ = connection.Close()
			_, got, _ := strings.Cut(string(answer), "\r\n\r\n")
			want := `x, <nil>, [], ["7"]`
			if announced == "" && e != nil { // net/http tells only the request that it has made
				want = "x, <nil>, [], []"
			}
			if got != want {
				t.Errorf("%s, %q: %s", name, announced, got)
			}
		}
	}
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	var visits atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(other.Close)
	service := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(service.Close)
	polled := newPoll(service.URL+"/", "secret")
	t.Cleanup(polled.close)
	_, askErr := polled.post(1, "v", asking{})
	for _, err := range []error{(&line{poll: polled}).listen(), askErr} {
		if err == nil || !strings.Contains(err.Error(), "307") || visits.Load() != 0 {
			t.Errorf("%v, %d visits", err, visits.Load())
		}
	}
}

// FuzzLease: no text breaks what reads rules, and what is read allots each device as it says.
func FuzzLease(f *testing.F) {
	for _, each := range vectors[edgeVectors](f, "edge.json").Leases {
		f.Add([]byte(each.Document), "kim")
	}
	keys := keysOf(f)
	f.Fuzz(func(t *testing.T, text []byte, device string) {
		read, err := readLease(text)
		if err != nil {
			return
		}
		if read.seconds < 0 || read.seconds > maxLease {
			t.Fatalf("it holds for %s", read.seconds)
		}
		treated := 0
		for _, each := range read.claims(markOf(device)) {
			if each.arm == fit.Treatment {
				treated++
			}
			what := stamp{experiment: each.rule.experiment, arm: each.arm, expires: 1, faults: each.rule.faults,
				longest: each.rule.delay, lot: device}
			_, _ = what.sign(keys)
		}
		if treated > 1 {
			t.Fatalf("a device is treated by %d", treated)
		}
	})
}

// FuzzAdmit: whatever a device sends, it goes on with at most one context, which this edge has signed, and
// with everybody else's entries as they were.
func FuzzAdmit(f *testing.F) {
	f.Add("a=b,fit=1.2", "d1", "page=1&path=[[\"a\",1]]", "ab=1; c", "Android Mobile")
	f.Add("%66it=1,\x85FIT =2", "d\xe9", "query={a}&extensions={}", "", "")
	e := given(f, Config{Features: "cookie.ab,baggage.a"}, map[string]any{"predicate": []any{}})
	f.Fuzz(func(t *testing.T, baggage, device, query, cookie, agent string) {
		request := asked("/titles/17", "Baggage", baggage, DeviceHeader, device, "Cookie", cookie, "User-Agent", agent)
		request.RequestURI += "?" + query
		got := header(onward(e, request), "Baggage")
		values, others := fit.Entries(got)
		_, want := fit.Entries(baggage)
		if others != want {
			t.Fatalf("%q goes on as %q", baggage, got)
		}
		for _, each := range values {
			if read, err := fit.Decode(keysOf(t), each, time.Now()); err != nil || read.Experiment != "e1" {
				t.Fatalf("%q goes on with %q: %v", baggage, got, err)
			}
		}
		if len(values) > 1 {
			t.Fatalf("%q goes on as %q", baggage, got)
		}
	})
}

func BenchmarkNobodysRequest(b *testing.B) {
	e := given(b, Config{}, map[string]any{"treatment": 0})
	handler := e.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	request := asked("/titles/17", DeviceHeader, "d1").WithContext(context.Background())
	b.ResetTimer()
	for range b.N {
		handler.ServeHTTP(nil, request)
	}
}
