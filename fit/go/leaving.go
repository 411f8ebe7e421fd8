package fit

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// Propagator wraps the one that OpenTelemetry is told, so that no client that is instrumented and not wrapped by
// this module sends a failure context to anybody:
//
//	otel.SetTextMapPropagator(injector.Propagator(propagation.NewCompositeTextMapPropagator(
//		propagation.TraceContext{}, propagation.Baggage{})))
//
// The rest of the baggage goes on. Of a client that is not in this module, [Injector.To] says where it calls.
func (i *Injector) Propagator(inner propagation.TextMapPropagator) propagation.TextMapPropagator {
	if i == nil {
		return inner
	}
	i.guards.Store(true)
	return guard{inner}
}

type guard struct{ propagation.TextMapPropagator }

type leaving struct{}

func (g guard) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if carried(ctx) != "" && ctx.Value(leaving{}) == nil {
		ctx = Carry(ctx, "")
	}
	g.TextMapPropagator.Inject(ctx, carrier)
}

// To returns the context of a call to these hosts: without the failure context, where one of them may not have it.
func (i *Injector) To(ctx context.Context, hosts ...string) context.Context {
	if !i.Armed(ctx) {
		return ctx
	}
	for _, each := range hosts {
		if !i.hosts.Allow(each) {
			return Carry(ctx, "")
		}
	}
	if !i.guards.Load() {
		return ctx
	}
	return context.WithValue(ctx, leaving{}, true)
}

// onward returns a request as it may go to its host: without the failure context, to one that may not have it.
func (i *Injector) onward(request *http.Request) *http.Request {
	host := request.URL.Hostname()
	allowed := i.hosts.Allow(host)
	if allowed && !i.guards.Load() {
		return request
	}
	onward := request.WithContext(i.To(request.Context(), host)) // for instrumentation that stands beneath
	if allowed {
		onward.Header = with(carried(request.Context()), request.Header)
	} else {
		onward.Header = i.hosts.Withhold(host, request.Header)
	}
	return onward
}

// with returns headers that have our entry, which instrumentation above has left out.
func with(value string, headers http.Header) http.Header {
	sent := headers["Baggage"]
	if value == "" || len(sent) > 0 && soleEntry(sent) == value {
		return headers
	}
	onward := headers.Clone()
	onward["Baggage"] = append([]string{Entry + "=" + value}, without(sent)...)
	return onward
}
