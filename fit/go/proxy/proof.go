package proxy

import (
	"context"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// proofDelay is after how long a proof is exported: an experiment waits for it.
var proofDelay = 500 * time.Millisecond

// Callers makes one injector for each caller that a proxy stands beside, whose spans name that caller
// as their service.
type Callers struct {
	keys     *fit.Keys
	exporter sdk.SpanExporter

	mutex sync.Mutex
	known map[string]*caller
}

type caller struct {
	injector *fit.Injector
	provider *sdk.TracerProvider
}

// NewCallers takes the exporter that proofs go to. Without one, or without keys, nothing is injected.
func NewCallers(keys *fit.Keys, exporter sdk.SpanExporter) *Callers {
	return &Callers{keys: keys, exporter: exporter, known: map[string]*caller{}}
}

// ExporterFromEnv makes the OTLP/HTTP exporter that OpenTelemetry's variables describe; nil where they
// name no endpoint.
func ExporterFromEnv(ctx context.Context) (sdk.SpanExporter, error) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if os.Getenv(name) != "" {
			return otlptracehttp.New(ctx)
		}
	}
	return nil, nil
}

const maxCallers = 256 // a peer that names ever new callers must not fill the memory

// Injector returns the one that acts for a caller; nil, which does nothing, without keys or an exporter.
func (c *Callers) Injector(name string) *fit.Injector {
	if c.keys == nil || c.exporter == nil || name == "" {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found, known := c.known[name]
	if !known {
		if len(c.known) >= maxCallers {
			return nil
		}
		named := resource.NewSchemaless(attribute.String("service.name", name))
		provider := sdk.NewTracerProvider(
			sdk.WithResource(named), sdk.WithBatcher(shared{c.exporter}, sdk.WithBatchTimeout(proofDelay)))
		found = &caller{fit.New(name, c.keys, fit.WithTracerProvider(provider), fit.WithProgram("ldfi-proxy")), provider}
		c.known[name] = found
	}
	return found.injector
}

// Shutdown exports what is left.
func (c *Callers) Shutdown(ctx context.Context) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, each := range c.known {
		_ = each.provider.Shutdown(ctx)
	}
	if c.exporter != nil {
		_ = c.exporter.Shutdown(ctx)
	}
}

// Flush exports what has ended so far.
func (c *Callers) Flush(ctx context.Context) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, each := range c.known {
		_ = each.provider.ForceFlush(ctx)
	}
}

// shared is an exporter that several providers use, none of which may shut it down.
type shared struct{ sdk.SpanExporter }

func (shared) Shutdown(context.Context) error { return nil }
