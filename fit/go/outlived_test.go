package fit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

// ways are how work of a request gets at the request's context.
var ways = map[string]func(context.Context) context.Context{
	"without its end": context.WithoutCancel,
	"in a span of its own": func(ctx context.Context) context.Context {
		ctx, span := trace.SpanFromContext(ctx).TracerProvider().Tracer("work").Start(context.WithoutCancel(ctx), "work")
		span.End()
		return ctx
	},
	"by its span and its baggage": func(ctx context.Context) context.Context {
		return baggage.ContextWithBaggage(
			trace.ContextWithSpan(context.Background(), trace.SpanFromContext(ctx)), baggage.FromContext(ctx))
	},
	"by its trace and its baggage": func(ctx context.Context) context.Context {
		return baggage.ContextWithBaggage(trace.ContextWithSpanContext(
			context.Background(), trace.SpanContextFromContext(ctx)), baggage.FromContext(ctx))
	},
	"by its baggage": func(ctx context.Context) context.Context {
		return baggage.ContextWithBaggage(context.Background(), baggage.FromContext(ctx))
	},
}

// whens are when it is done: each calls work, once, when the request is over.
var whens = map[string]func(over <-chan struct{}, work func()){
	"goroutine": func(over <-chan struct{}, work func()) { go func() { <-over; work() }() },
	"worker": func() func(<-chan struct{}, func()) {
		queue := make(chan func(), 1)
		go func() {
			for work := range queue {
				work()
			}
		}()
		return func(over <-chan struct{}, work func()) { queue <- func() { <-over; work() } }
	}(),
	"ticker": func(over <-chan struct{}, work func()) {
		go func() {
			ticker := time.NewTicker(time.Microsecond)
			defer ticker.Stop()
			<-over
			<-ticker.C
			work()
		}()
	},
	"timer": func(over <-chan struct{}, work func()) {
		time.AfterFunc(time.Microsecond, func() { <-over; work() })
	},
}

func TestACallThatBeginsAfterItsRequestIsLetThrough(t *testing.T) {
	server := newBreaking(t)
	value := fittest.Sign('t', fittest.Fault{How: "status-404", Point: server.point()})
	for set, up := range map[string]func(*fittest.Service, http.Handler) http.Handler{
		"plain":   func(s *fittest.Service, next http.Handler) http.Handler { return s.Handler(next) },
		"sampled": func(_ *fittest.Service, next http.Handler) http.Handler { return next },
		"both":    func(s *fittest.Service, next http.Handler) http.Handler { return s.Handler(next) },
	} {
		for way, derived := range ways {
			for when, after := range whens {
				t.Run(set+"/"+way+"/"+when, func(t *testing.T) {
					service := fittest.New(t, "api")
					if set != "plain" {
						service.Sampled()
					}
					client := &http.Client{Transport: otelhttp.NewTransport(service.Transport(nil),
						otelhttp.WithTracerProvider(service.Provider))}
					over, left := make(chan struct{}), make(chan string, 1)
					var within string
					handler := otelhttp.NewHandler(up(service, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						within = seen(client, r.Context(), server.URL)
						ctx := derived(r.Context())
						after(over, func() { left <- seen(client, ctx, server.URL) })
					})), "server", otelhttp.WithTracerProvider(service.Provider), otelhttp.WithPropagators(
						propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})))
					request := httptest.NewRequest(http.MethodGet, "/", nil)
					request.Header.Set("Baggage", "fit="+value)
					handler.ServeHTTP(httptest.NewRecorder(), request)
					close(over)
					if done := <-left; !strings.HasPrefix(within, "404") || !strings.HasPrefix(done, "200") {
						t.Errorf("within %s, after it %s", within, done)
					}
					outlived := 0
					for _, marks := range service.Marks() {
						if marks["fit.outlived"] == "true" && marks["fit.point"] != "" && marks["fit.fired"] == "" {
							outlived++
						}
					}
					if outlived != 1 {
						t.Errorf("%d calls are marked", outlived)
					}
				})
			}
		}
	}
}

// Two requests of one trace: that the inner one is over says nothing of the other.
func TestARequestWithinAnotherEndsAlone(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	client := &http.Client{Transport: service.Transport(nil)}
	value := fittest.Sign('t', fittest.Fault{How: "status-404", Point: server.point()})
	ctx, span := service.Provider.Tracer("t").Start(
		fittest.Carrying(context.Background(), value), "request", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	outer, ended := service.Begin(ctx)
	inner, endedFirst := service.Begin(ctx)
	endedFirst()
	if within, after := seen(client, outer, server.URL), seen(client, inner, server.URL); !strings.HasPrefix(within, "404") ||
		!strings.HasPrefix(after, "200") {
		t.Errorf("in the outer %s, after the inner %s", within, after)
	}
	ended()
}

// Requests that wait for a call of another one (a single flight) get its failure, and are not of the experiment.
func TestWhoJoinsACallOfATreatedRequestIsTold(t *testing.T) {
	const waiting = 5
	service, server := fittest.New(t, "api"), newBreaking(t)
	client := &http.Client{Transport: service.Transport(nil)}
	value := fittest.Sign('t', fittest.Fault{How: "status-404", Point: server.point()})
	var once sync.Once
	var answer string
	joined := make(chan struct{}, waiting)
	shared := func(ctx context.Context) string { // sync.Once has the others wait for the first
		joined <- struct{}{}
		once.Do(func() {
			for len(joined) < waiting {
				time.Sleep(time.Millisecond)
			}
			answer = seen(client, ctx, server.URL)
		})
		return answer
	}
	began, answers := make(chan struct{}), make(chan string, waiting)
	serve := func(ctx context.Context) {
		ctx, span := service.Provider.Tracer("t").Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		ctx, ended := service.Begin(ctx)
		defer ended()
		answers <- shared(ctx)
	}
	go func() { close(began); serve(fittest.Carrying(context.Background(), value)) }()
	<-began
	for len(joined) == 0 { // the treated one is first
		time.Sleep(time.Millisecond)
	}
	for range waiting - 1 {
		go serve(context.Background())
	}
	for range waiting {
		if each := <-answers; !strings.HasPrefix(each, "404") {
			t.Errorf("one who waits saw %s", each)
		}
	}
	fired := 0
	for _, marks := range service.Marks() {
		if marks["fit.fired"] != "" {
			fired++
		}
	}
	if fired != 1 {
		t.Errorf("%d calls are marked as hit", fired)
	}
}
