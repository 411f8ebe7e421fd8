package proxy

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/edge"
)

// Front is an edge as a reverse proxy, in front of a service in any language. It is a service of its own in
// traces: each request that comes in has a span there, under which the upstream's is, and its calls to the
// upstream are injection points.
//
// It speaks no TLS: what it cannot read it cannot take contexts out of.
type Front struct {
	server   *http.Server
	provider *sdk.TracerProvider
}

// NewFront makes one. Name is the service's that its spans say; sample is the share of requests that are
// traced where nobody has decided before, besides all those under experiment. Without keys or an exporter
// contexts from outside are taken out and nothing is stamped: nobody could prove anything.
func NewFront(
	decides *edge.Edge, name string, keys *fit.Keys, exporter sdk.SpanExporter, sample float64, upstream *url.URL,
) *Front {
	quiet := log.New(io.Discard, "", 0)
	if keys == nil || exporter == nil {
		asIs := func(transport http.RoundTripper) http.RoundTripper { return transport }
		var strips *edge.Edge
		return &Front{server: newServer(strips.Handler(passing(upstream, quiet, asIs)), quiet)}
	}
	injector := fit.New(name, keys, fit.WithProgram("ldfi-proxy/edge"))
	provider := sdk.NewTracerProvider(
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", name))),
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(proofDelay*1e6)),
		sdk.WithSampler(injector.Sampler(sdk.ParentBased(sdk.TraceIDRatioBased(sample)))),
	)
	fit.WithTracerProvider(provider)(injector)
	onward := passing(upstream, quiet, func(transport http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(injector.Transport(transport),
			otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagator))
	})
	came := propagation.NewCompositeTextMapPropagator(propagator, propagation.Baggage{})
	traced := otelhttp.NewHandler(injector.Handler(onward), name,
		otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(came))
	return &Front{newServer(decides.Handler(traced), quiet), provider}
}

// Serve accepts connections until the proxy is shut down.
func (f *Front) Serve(listener net.Listener) error { return f.server.Serve(listener) }

// Shutdown ends the proxy, and exports what is left.
func (f *Front) Shutdown(ctx context.Context) {
	_ = f.server.Shutdown(ctx)
	if f.provider != nil {
		_ = f.provider.Shutdown(ctx)
	}
}
