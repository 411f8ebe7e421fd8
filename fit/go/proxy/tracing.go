package proxy

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// tracing is how an edge that is a process of its own is a service in traces.
type tracing struct {
	name     string
	injector *fit.Injector
	provider *sdk.TracerProvider
}

// newTracing returns nil without keys or an exporter.
func newTracing(name string, keys *fit.Keys, exporter sdk.SpanExporter, sample float64) *tracing {
	if keys == nil || exporter == nil {
		return nil
	}
	injector := fit.New(name, keys, fit.WithProgram("ldfi-proxy/edge"))
	provider := sdk.NewTracerProvider(
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", name))),
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(proofDelay)),
		sdk.WithSampler(injector.Sampler(sdk.ParentBased(sdk.TraceIDRatioBased(sample)))),
	)
	fit.WithTracerProvider(provider)(injector)
	return &tracing{name, injector, provider}
}

// calls gives each call a span.
func (t *tracing) calls(transport http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(transport, otelhttp.WithTracerProvider(t.provider),
		otelhttp.WithPropagators(propagator))
}

// requests gives each request that comes in a span.
func (t *tracing) requests(onward http.Handler) http.Handler {
	came := propagation.NewCompositeTextMapPropagator(propagator, propagation.Baggage{})
	return otelhttp.NewHandler(t.injector.Handler(onward), t.name,
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(came))
}

func (t *tracing) shutdown(ctx context.Context) {
	if t != nil {
		_ = t.provider.Shutdown(ctx)
	}
}
