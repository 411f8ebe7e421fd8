// A service of 2024: its resource names the semantic conventions of its day, and it ends where they conflict with its SDK's.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.24.0"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	_ "github.com/ldfi-dev/ldfi/fit/go/edge"
	_ "github.com/ldfi-dev/ldfi/fit/go/fitgrpc"
	_ "github.com/ldfi-dev/ldfi/fit/go/fitsql"
)

func main() {
	described, err := resource.New(context.Background(), resource.WithSchemaURL(semconv.SchemaURL),
		resource.WithAttributes(semconv.ServiceName("host")), resource.WithTelemetrySDK(), resource.WithHost())
	if err != nil {
		log.Fatal(err)
	}
	injector, err := fit.FromEnv()
	if err != nil {
		log.Fatal(err)
	}
	sampler := injector.Sampler(sdk.ParentBased(sdk.AlwaysSample()))
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSampler(sampler), sdk.WithResource(described)))
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	client := &http.Client{Transport: otelhttp.NewTransport(injector.Transport(nil))}
	serve := func(writer http.ResponseWriter, request *http.Request) {
		call, _ := http.NewRequestWithContext(request.Context(), http.MethodGet, os.Getenv("UPSTREAM"), nil)
		answer, err := client.Do(call)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		_, _ = fmt.Fprint(writer, answer.StatusCode)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, otelhttp.NewHandler(injector.Handler(http.HandlerFunc(serve)), "server")))
}
