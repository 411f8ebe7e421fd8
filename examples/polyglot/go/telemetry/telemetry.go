// Package telemetry is OpenTelemetry and fit, for the Go services: all that a service needs to be explored.
package telemetry

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const patience = 2 * time.Second

// SetUp exports spans as the environment says, and obeys the failure context.
func SetUp(ctx context.Context) *fit.Injector {
	injector, err := fit.FromEnv()
	if err != nil {
		log.Print(err)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		log.Fatal(err)
	}
	otel.SetTracerProvider(sdk.NewTracerProvider(
		sdk.WithBatcher(exporter), sdk.WithSampler(injector.Sampler(sdk.ParentBased(sdk.AlwaysSample())))))
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, propagation.Baggage{}))
	return injector
}

// Client is one whose calls are injection points.
func Client(injector *fit.Injector) *http.Client {
	return &http.Client{Transport: otelhttp.NewTransport(injector.Transport(nil)), Timeout: patience}
}

// Serve answers at the port that the environment names, until the process is killed.
func Serve(injector *fit.Injector, handler http.Handler) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(writer http.ResponseWriter, _ *http.Request) { _, _ = writer.Write([]byte("ok")) })
	mux.Handle("/", otelhttp.NewHandler(injector.Handler(handler), "server"))
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: mux, ReadHeaderTimeout: patience}
	log.Fatal(server.ListenAndServe())
}
