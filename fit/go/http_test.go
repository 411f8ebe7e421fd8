package fit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

// breaking is a server that answers, and can do what servers do when they fail.
type breaking struct {
	*httptest.Server
	mutex sync.Mutex
	do    http.HandlerFunc
}

// become has the server do something else, and returns what it did.
func (b *breaking) become(do http.HandlerFunc) (before http.HandlerFunc) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	before, b.do = b.do, do
	return before
}

func newBreaking(t *testing.T) *breaking {
	server := &breaking{do: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }}
	server.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.mutex.Lock()
		do := server.do
		server.mutex.Unlock()
		do(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func (b *breaking) point() string {
	return "api>http:GET:" + strings.TrimPrefix(b.URL, "http://") + "/titles/*"
}

// seen is what a caller sees: the answer, or the types and the words of its error.
func seen(client *http.Client, ctx context.Context, url string) string {
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+"/titles/17", nil)
	response, err := client.Do(request)
	if err != nil {
		return described(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Sprintf("%d, then %s", response.StatusCode, described(err))
	}
	return fmt.Sprintf("%d %q", response.StatusCode, body)
}

var ports = regexp.MustCompile(`(127\.0\.0\.1:\d+->)?127\.0\.0\.1:\d+`)

func described(err error) string {
	var types []string
	for each := err; each != nil; each = errors.Unwrap(each) {
		types = append(types, fmt.Sprintf("%T", each))
	}
	// At a Client.Timeout two timers of net/http end at the same instant, and either may speak.
	words := strings.ReplaceAll(err.Error(), "request canceled (", "context deadline exceeded (")
	words = strings.ReplaceAll(words, "net/http: context", "context")
	return strings.Join(types, " ") + ": " + ports.ReplaceAllString(words, "ADDRESS")
}

func hangUp(w http.ResponseWriter, r *http.Request) {
	connection, _, _ := w.(http.Hijacker).Hijack()
	_ = connection.(*net.TCPConn).SetLinger(0)
	_ = connection.Close()
}

func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "99")
	_, _ = io.WriteString(w, `{"why": "fault injected", "mo`)
}

func sleep(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(5 * time.Second):
	}
}

func TestWhatCallersSeeIsWhatReallyHappens(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	plain := func() *http.Transport { return &http.Transport{DisableKeepAlives: true} }
	impatient := func() *http.Transport {
		return &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: 50 * time.Millisecond}
	}
	for _, each := range []struct {
		how     string
		really  func(http.ResponseWriter, *http.Request)
		base    func() *http.Transport
		timeout time.Duration
	}{
		{"refused", nil, plain, 0},
		{"reset", hangUp, plain, 0},
		{"truncated", cut, plain, 0},
		{"timeout-9000", sleep, plain, 50 * time.Millisecond},
		{"delay-9000", sleep, plain, 50 * time.Millisecond},
		{"timeout-9000", sleep, impatient, 0},
		{"delay-9000", sleep, impatient, 0},
	} {
		t.Run(each.how, func(t *testing.T) {
			url := server.URL
			if each.really == nil {
				url = closed.URL
			}
			value := fittest.Sign('t', fittest.Fault{How: each.how, Point: server.point()})
			kind, _, _ := strings.Cut(each.how, "-")
			var injected, really string
			// At a Client.Timeout the context's deadline or the client's timer is first, by chance.
			for tries := 0; tries < 5 && (tries == 0 || injected != really && each.timeout > 0); tries++ {
				fine := server.become(each.really)
				really = seen(&http.Client{Transport: each.base(), Timeout: each.timeout}, context.Background(), url)
				server.become(fine)
				really = strings.ReplaceAll(really, strings.TrimPrefix(url, "http://"), "ADDRESS")
				client := &http.Client{Transport: service.Transport(each.base()), Timeout: each.timeout}
				injected = seen(client, fittest.Carrying(context.Background(), value), server.URL)
				if marks := service.Marks(); len(marks) != 1 || marks[0]["fit.fired"] != kind {
					t.Errorf("proof: %v", marks)
				}
			}
			if injected != really {
				t.Errorf("injected %s\nreally   %s", injected, really)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	client := &http.Client{Transport: service.Transport(nil)}
	for how, want := range map[string]string{
		"error":        `503 "fault injected"`,
		"status-404":   `404 "fault injected"`,
		"status-503":   `503 "fault injected"`,
		"empty":        `200 ""`,
		"corrupt":      `200 "\xff\x00\xfefault injected\xc3("`,
		"grpc-ABORTED": `200 "fine"`,
		"sql-lost":     `200 "fine"`,
		"timeout-50":   `200 "fine"`,
	} {
		value := fittest.Sign('t', fittest.Fault{How: how, Point: server.point()})
		if got := seen(client, fittest.Carrying(context.Background(), value), server.URL); got != want {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
		fired := strings.Replace(how, "-", ":", 1)
		if marks := service.Marks(); (want == `200 "fine"`) != (len(marks) == 0) ||
			len(marks) > 0 && marks[0]["fit.fired"] != fired {
			t.Errorf("%s: proof %v", how, marks)
		}
	}
}

func TestTheProofIsOnTheSpanOfTheCall(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	value := fittest.Sign('t', fittest.Fault{How: "refused", Point: server.point()})
	ctx, span := service.Provider.Tracer("test").Start(
		fittest.Carrying(context.Background(), value), "GET", trace.WithSpanKind(trace.SpanKindClient))
	_ = seen(&http.Client{Transport: service.Transport(nil)}, ctx, server.URL)
	span.End()
	spans := service.Spans.GetSpans()
	marks := service.Marks()
	if len(spans) != 2 || spans[0].Name != "fit.mark" || spans[1].Name != "GET" || len(marks) != 1 {
		t.Fatalf("%d spans, marks %v", len(spans), marks)
	}
	event := "fit.fault fit.experiment=e7c1,fit.fired=refused,fit.point=" + server.point()
	if got := strings.ReplaceAll(marks[0]["event"], `\`, ""); got != event {
		t.Errorf("event %s, want %s", got, event)
	}
}

func TestTheControlArmOnlyRecords(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	client := &http.Client{Transport: service.Transport(nil)}
	for _, how := range []string{"refused", "error", "status-503", "delay-60000"} {
		value := fittest.Sign('c', fittest.Fault{How: how, Point: server.point()})
		got := seen(client, fittest.Carrying(context.Background(), value), server.URL)
		marks := service.Marks()
		if got != `200 "fine"` || len(marks) != 1 || marks[0]["fit.would_fire"] == "" || marks[0]["fit.fired"] != "" {
			t.Errorf("%s: %s, %v", how, got, marks)
		}
	}
}

func TestTheFirstCallsOfARequestFail(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	client := &http.Client{Transport: service.Transport(nil)}
	for range 2 {
		for arm, want := range map[byte]string{'t': "fired fired let_through", 'c': "would_fire would_fire let_through"} {
			value := fittest.Sign(arm, fittest.Fault{How: "status-500-n2", Point: server.point()})
			ctx, span := service.Provider.Tracer("test").Start(context.Background(), "a request")
			for range 3 {
				_ = seen(client, fittest.Carrying(ctx, value), server.URL)
			}
			span.End()
			var got []string
			for _, marks := range service.Marks() {
				for _, mark := range []string{"fired", "would_fire", "let_through"} {
					if marks["fit."+mark] != "" {
						got = append(got, mark)
					}
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("arm %c: %v", arm, got)
			}
		}
	}
}

func TestNothingIsInjectedWhereNothingIsRecorded(t *testing.T) {
	server := newBreaking(t)
	keys, _ := fit.ParseKeys(fittest.Key)
	for name, provider := range map[string]trace.TracerProvider{
		"no SDK":      noop.NewTracerProvider(),
		"not sampled": sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample())),
	} {
		injector := fit.New("api", keys, fit.WithTracerProvider(provider))
		value := fittest.Sign('t', fittest.Fault{How: "refused", Point: server.point()})
		client := &http.Client{Transport: injector.Transport(nil)}
		if got := seen(client, fittest.Carrying(context.Background(), value), server.URL); got != `200 "fine"` {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestADelayThatIsOutlastedGoesThrough(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	value := fittest.Sign('t', fittest.Fault{How: "delay-80", Point: server.point()})
	began := time.Now()
	client := &http.Client{Transport: service.Transport(nil), Timeout: 30 * time.Second}
	got := seen(client, fittest.Carrying(context.Background(), value), server.URL)
	if took := time.Since(began); got != `200 "fine"` || took < 80*time.Millisecond {
		t.Errorf("%s after %s", got, took)
	}
	if marks := service.Marks(); len(marks) != 1 || marks[0]["fit.fired"] != "delay" {
		t.Errorf("proof %v", marks)
	}
}

func TestRequestsThatRunAtOnceDoNotSeeEachOthersFaults(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	client := &http.Client{Transport: service.Transport(nil)}
	front := httptest.NewServer(service.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, seen(client, r.Context(), server.URL))
	})))
	defer front.Close()
	value := fittest.Sign('t', fittest.Fault{How: "status-404", Point: server.point()})
	var all sync.WaitGroup
	for i := range 200 {
		all.Add(1)
		go func() {
			defer all.Done()
			request, _ := http.NewRequest(http.MethodGet, front.URL, nil)
			want := `200 "fine"`
			switch i % 3 {
			case 0:
				request.Header.Set("Baggage", "a=b,fit="+value)
				want = `404 "fault injected"`
			case 1:
				request.Header.Set("Baggage", "fit="+value+",fit="+value)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = response.Body.Close() }()
			if body, _ := io.ReadAll(response.Body); string(body) != want {
				t.Errorf("request %d: %s, want %s", i, body, want)
			}
		}()
	}
	all.Wait()
}

func TestTheHandlerMarksTheRequest(t *testing.T) {
	service := fittest.New(t, "api")
	var carried string
	handler := service.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		carried = baggage.FromContext(r.Context()).Member("fit").Value()
	}))
	value := fittest.Sign('c')
	ctx, span := service.Provider.Tracer("test").Start(context.Background(), "GET /")
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	request.Header.Add("Baggage", "a=b")
	request.Header.Add("Baggage", "fit="+value)
	handler.ServeHTTP(httptest.NewRecorder(), request)
	span.End()
	marks := service.Marks()
	if carried != value || len(marks) != 1 || marks[0]["fit.experiment"] != "e7c1" || marks[0]["fit.arm"] != "control" {
		t.Errorf("carried %q, marks %v", carried, marks)
	}
}

func TestTheSamplerKeepsRequestsUnderExperiment(t *testing.T) {
	service := fittest.New(t, "api")
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans), sdk.WithSampler(service.Sampler(sdk.NeverSample())))
	tracer := provider.Tracer("test")
	_, ordinary := tracer.Start(context.Background(), "ordinary")
	ordinary.End()
	ctx, root := tracer.Start(fittest.Carrying(context.Background(), fittest.Sign('t')), "tried")
	var calls sync.WaitGroup
	for range 5 {
		calls.Add(1)
		go func() {
			defer calls.Done()
			_, call := tracer.Start(ctx, "call", trace.WithSpanKind(trace.SpanKindClient))
			call.End()
		}()
	}
	calls.Wait()
	root.End()
	service.Spans = spans
	kept := spans.GetSpans()
	marks := service.Marks()
	want := map[string]string{"fit.experiment": "e7c1", "fit.arm": "treatment", "fit.calls": "5"}
	if len(kept) != 6 || len(marks) != 1 || fmt.Sprint(marks[0]) != fmt.Sprint(want) {
		t.Errorf("%d spans, marks %v", len(kept), marks)
	}
}

func TestANilInjectorDoesNothing(t *testing.T) {
	var injector *fit.Injector
	if injector.Armed(context.Background()) || injector.Service() != "" {
		t.Error("a nil injector is armed")
	}
	if injector.Transport(nil) != http.DefaultTransport {
		t.Error("a nil injector wraps transports")
	}
	t.Setenv(fit.KeysVariable, "")
	if made, err := fit.FromEnv(); made != nil || err != nil {
		t.Errorf("without a key: %v, %v", made, err)
	}
	t.Setenv(fit.KeysVariable, "broken")
	if made, err := fit.FromEnv(); made != nil || !errors.Is(err, fit.ErrKeys) {
		t.Errorf("with a broken one: %v, %v", made, err)
	}
	t.Setenv(fit.KeysVariable, fittest.Key)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name = my%20shop")
	if made, err := fit.FromEnv(); err != nil || made.Service() != "my shop" {
		t.Errorf("service %q, %v", made.Service(), err)
	}
}

func BenchmarkUnarmed(b *testing.B) {
	service := fittest.New(b, "api")
	ctx, span := service.Provider.Tracer("test").Start(fittest.OfUser(context.Background()), "GET")
	defer span.End()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if service.Armed(ctx) {
			b.Fatal("armed")
		}
	}
}

type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

func BenchmarkRoundTripUnarmed(b *testing.B) {
	service := fittest.New(b, "api")
	transport := service.Transport(nowhere{})
	for name, ctx := range map[string]context.Context{
		"alone": context.Background(), "baggage": fittest.OfUser(context.Background()),
	} {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://ratings/titles/17", nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				_, _ = transport.RoundTrip(request)
			}
		})
	}
}

func BenchmarkHandlerUnarmed(b *testing.B) {
	service := fittest.New(b, "api")
	handler := service.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	request := httptest.NewRequest(http.MethodGet, "/titles/17", nil)
	request = request.WithContext(fittest.OfUser(context.Background()))
	request.Header.Set("Baggage", "user=u1,tier=gold")
	writer := httptest.NewRecorder()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		handler.ServeHTTP(writer, request)
	}
}

// knowsNobody is a transport whose resolver says of every name that there is none.
func knowsNobody(t *testing.T) *http.Transport {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		question := make([]byte, 512)
		for {
			length, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			question[2], question[3] = 0x81, 0x83 // an answer: NXDOMAIN (RFC 1035, 4.1.1)
			question[10], question[11] = 0, 0     // and nothing besides
			_, _ = server.WriteTo(question[:length], from)
		}
	}()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	return &http.Transport{DialContext: (&net.Dialer{Resolver: resolver}).DialContext}
}

func TestANameThatDoesNotResolve(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	names := regexp.MustCompile(`localhost:\d+|localhost|nobody\.invalid\.?( on [\d.]+:\d+)?`)
	real := seen(&http.Client{Transport: knowsNobody(t)}, context.Background(), "http://nobody.invalid")
	client := &http.Client{Transport: service.Injector.Transport(&http.Transport{DisableKeepAlives: true})}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		url := strings.Replace(server.URL, "127.0.0.1", host, 1)
		point := strings.Replace(server.point(), "127.0.0.1", host, 1)
		ctx := fittest.Carrying(context.Background(), fittest.Sign('t', fittest.Fault{How: "unresolved", Point: point}))
		injected, marks := seen(client, ctx, url), service.Marks()
		if host == "127.0.0.1" { // it is known by its address
			if injected != `200 "fine"` || len(marks) != 0 {
				t.Errorf("%s: %s, %v", host, injected, marks)
			}
			continue
		}
		if names.ReplaceAllString(injected, "HOST") != names.ReplaceAllString(real, "HOST") {
			t.Errorf("%s\nreally %s", injected, real)
		}
		if len(marks) != 1 || marks[0]["fit.fired"] != "unresolved" {
			t.Errorf("proof %v", marks)
		}
	}
	var unknown *net.DNSError
	if err := fit.Unconnected("unresolved", "ratings", "80"); !errors.As(err, &unknown) || !unknown.IsNotFound {
		t.Errorf("%#v", err)
	}
}
