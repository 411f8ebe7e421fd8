package fit

import (
	"context"
	"net/http"
	"slices"

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

// onward returns a request as it may go by a transport: without the failure context, where somebody who may not have
// it can read the request.
func (i *Injector) onward(request *http.Request, by http.RoundTripper) *http.Request {
	hosts := readers(request, by)
	stranger := slices.IndexFunc(hosts, func(host string) bool { return !i.hosts.Allow(host) })
	if stranger < 0 && !i.guards.Load() {
		return request
	}
	onward := request.WithContext(i.To(request.Context(), hosts...)) // for instrumentation that stands beneath
	if stranger < 0 {
		onward.Header = with(carried(request.Context()), request.Header)
	} else {
		onward.Header = i.hosts.Withhold(hosts[stranger], request.Header)
	}
	return onward
}

// readers lists who can read a request: its host and, where it is not encrypted, the proxy by which a transport of
// net/http's sends it.
func readers(request *http.Request, by http.RoundTripper) []string {
	hosts := []string{request.URL.Hostname()}
	transport, ok := by.(*http.Transport)
	if !ok || transport.Proxy == nil || request.URL.Scheme != "http" {
		return hosts
	}
	if proxy, err := transport.Proxy(request); err == nil && proxy != nil {
		hosts = append(hosts, proxy.Hostname())
	}
	return hosts
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
