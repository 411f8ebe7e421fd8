package fit_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

func TestWhatAMarkSays(t *testing.T) {
	text, err := os.ReadFile("../protocol/vectors/marks.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Cases []struct {
			Text string
			Read *struct{ Arm, Experiment, Instance, Kind, Point string }
		}
	}
	if err = json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, each := range vectors.Cases {
		if read := each.Read; read != nil {
			fault := &fit.Fault{Injection: fit.Injection{Kind: fit.Kind(read.Kind)}, Point: read.Point}
			if got := fit.MarkOf(fit.Arm(read.Arm), read.Experiment, read.Instance, fault); got != each.Text {
				t.Errorf("%s, want %s", got, each.Text)
			}
			said++
		}
	}
	if said == 0 {
		t.Error("no vector has a mark")
	}
}

// collecting is a collector that keeps what it is sent.
type collecting struct {
	*httptest.Server
	mutex sync.Mutex
	spans []*otlp.Span
}

func collect(t *testing.T) *collecting {
	c := &collecting{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil {
			t.Error(err)
		}
		c.mutex.Lock()
		defer c.mutex.Unlock()
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// Whatever handler of a service the failure of a call ends the process in: the mark has left, below the call of the
// caller, and nothing else has.
func TestAMarkLeavesAProcessThatItsFaultEnds(t *testing.T) {
	if os.Getenv("FIT_TEST_DIES") != "" {
		dies(t)
	}
	server := newBreaking(t)
	for _, how := range []string{"handled", "sampled"} {
		for letter, arm := range map[byte]string{'t': "treatment", 'c': "control"} {
			seen := collect(t)
			program := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
			program.Env = append(os.Environ(), "FIT_TEST_DIES="+how, "FIT_TEST_CALLS="+server.URL,
				"OTEL_EXPORTER_OTLP_ENDPOINT="+seen.URL, "FIT_TEST_CONTEXT="+fittest.Sign(
					letter, fittest.Fault{How: "refused", Point: server.point()}))
			out, err := program.CombinedOutput()
			if ended := (*exec.ExitError)(nil); !errors.As(err, &ended) || ended.ExitCode() != 3 {
				t.Fatalf("%v: %s", err, out)
			}
			if len(seen.spans) != 1 {
				t.Fatalf("%s, %s: %v", how, arm, seen.spans)
			}
			mark := seen.spans[0]
			said := mark.Attributes[0].Value.GetStringValue()
			if mark.Name != "fit.mark" || mark.Kind != otlp.Span_SPAN_KIND_INTERNAL || len(mark.Attributes) != 1 ||
				!strings.HasPrefix(said, "1 "+arm+" e7c1 ") || !strings.HasSuffix(said, " refused@"+server.point()) ||
				mark.ParentSpanId[0] != 0xb7 {
				t.Errorf("%s, %s: %v", how, arm, mark)
			}
		}
	}
}

// dies serves one request, and ends the process when the call that it makes has ended.
func dies(t *testing.T) {
	fit.AwaitMarks(time.Minute)
	exporter, err := otlptracehttp.New(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := fit.ParseKeys(fittest.Key)
	injector := fit.New("api", keys)
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter, sdk.WithBatchTimeout(time.Hour)),
		sdk.WithSampler(injector.Sampler(sdk.NeverSample())))
	fit.WithTracerProvider(provider)(injector)
	client := &http.Client{Transport: otelhttp.NewTransport(injector.Transport(nil), otelhttp.WithTracerProvider(provider))}
	var handler http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = seen(client, r.Context(), os.Getenv("FIT_TEST_CALLS"))
		os.Exit(3)
	})
	if os.Getenv("FIT_TEST_DIES") == "handled" {
		handler = injector.Handler(handler)
	}
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	request.Header.Set("Baggage", "fit="+os.Getenv("FIT_TEST_CONTEXT"))
	otelhttp.NewHandler(handler, "server", otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(
		propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	)).ServeHTTP(httptest.NewRecorder(), request)
}

// stuck is an exporter that hangs, or fails.
type stuck struct {
	sdk.SpanExporter
	released chan struct{}
	exports  atomic.Int32
	fails    bool
}

func (s *stuck) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	s.exports.Add(1)
	if s.fails {
		panic("no collector")
	}
	<-s.released
	return nil
}

func (*stuck) Shutdown(context.Context) error { return nil }

func TestACollectorThatHangsOrFailsHoldsNoCallUp(t *testing.T) {
	for _, fails := range []bool{false, true} {
		exporter := &stuck{released: make(chan struct{}), fails: fails}
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(flushed{exporter}))
		keys, _ := fit.ParseKeys(fittest.Key)
		injector := fit.New("api", keys, fit.WithTracerProvider(provider))
		value := fittest.Sign('t', fittest.Fault{How: "refused", Point: "api>cache:GET:x"})
		ctx := fittest.Carrying(context.Background(), value)
		passed := make(chan struct{})
		go func() {
			defer close(passed)
			for range 20 {
				fault := injector.Pass(ctx, fit.Call{
					Point: func(string) string { return "api>cache:GET:x" },
					Can:   func(fit.Injection) bool { return true },
				})
				if fault == nil {
					t.Error("it does not fire")
				} else {
					fault.End(nil)
				}
			}
		}()
		select {
		case <-passed:
		case <-time.After(time.Minute): // of 100 ms
			t.Fatal("calls are held up")
		}
		if at := exporter.exports.Load(); !fails && at != 1 {
			t.Errorf("%d flushes at once", at)
		}
		close(exporter.released)
	}
}

// flushed exports when it is flushed, and nothing before.
type flushed struct{ *stuck }

func (flushed) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (flushed) OnEnd(sdk.ReadOnlySpan)                     {}
func (f flushed) ForceFlush(ctx context.Context) error     { return f.ExportSpans(ctx, nil) }

// Without a SERVER span, as with work that nobody has begun a span for, the mark stands below what the call is in.
func TestAMarkOfARequestFromOutsideStandsBelowItsSpan(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	keys, _ := fit.ParseKeys(fittest.Key)
	injector := fit.New("api", keys, fit.WithTracerProvider(provider))
	server := newBreaking(t)
	value := fittest.Sign('c', fittest.Fault{How: "refused", Point: server.point()})
	ctx, span := provider.Tracer("t").Start(
		fittest.Carrying(context.Background(), value), "served", trace.WithSpanKind(trace.SpanKindServer))
	ctx, ended := injector.Begin(ctx)
	_ = seen(&http.Client{Transport: injector.Transport(nil)}, ctx, server.URL)
	ended()
	for _, each := range exporter.GetSpans() {
		if each.Name == "fit.mark" && each.Parent.SpanID() == span.SpanContext().SpanID() {
			return
		}
	}
	t.Error("it stands elsewhere")
}
