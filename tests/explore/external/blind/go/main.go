// Command go is a page that needs one call: WAY says how it is lost to sight, or that it is not.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const patience = 3 * time.Second

var (
	store  = os.Getenv("STORE")
	needed = store + "/price/17"
)

type page struct {
	client, plain, untold, filtered *http.Client
	unexported                      *http.Client
	queue                           chan chan bool
	batch                           chan chan bool
}

func main() {
	if len(os.Args) > 1 {
		ask()
	}
	injector, err := fit.FromEnv()
	if err != nil {
		log.Fatal(err)
	}
	exporter, err := otlptracehttp.New(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	otel.SetTracerProvider(sdk.NewTracerProvider(
		sdk.WithBatcher(exporter), sdk.WithSampler(injector.Sampler(sdk.ParentBased(sdk.AlwaysSample())))))
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, propagation.Baggage{}))
	made := func(options ...otelhttp.Option) *http.Client {
		return &http.Client{Transport: otelhttp.NewTransport(injector.Transport(nil), options...), Timeout: patience}
	}
	serving := &page{
		client: made(), plain: &http.Client{Timeout: patience},
		untold: made(otelhttp.WithTracerProvider(noop.NewTracerProvider())),
		filtered: made(otelhttp.WithFilter(func(request *http.Request) bool {
			return !strings.HasPrefix(request.URL.Path, "/price")
		})),
		unexported: made(otelhttp.WithTracerProvider(sdk.NewTracerProvider())),
		queue:      make(chan chan bool),
		batch:      make(chan chan bool, 100),
	}
	go serving.works()
	go serving.batches()
	if os.Getenv("POLLS") != "" {
		go serving.polls()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(writer http.ResponseWriter, _ *http.Request) { _, _ = writer.Write([]byte("{}")) })
	mux.Handle("/", otelhttp.NewHandler(injector.Handler(serving), "server"))
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: mux, ReadHeaderTimeout: patience}
	log.Fatal(server.ListenAndServe())
}

func ask() {
	if asked(context.Background(), http.DefaultClient, needed) {
		os.Exit(0)
	}
	os.Exit(1)
}

func asked(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (p *page) needed(ctx context.Context) bool { return asked(ctx, p.client, needed) }

func (p *page) works() { // it began before any request
	for done := range p.queue {
		done <- p.needed(context.Background())
	}
}

func (p *page) batches() { // one call for all who have come by then
	for range time.Tick(5 * time.Millisecond) {
		var waiting []chan bool
		for len(p.batch) > 0 {
			waiting = append(waiting, <-p.batch)
		}
		if len(waiting) == 0 {
			continue
		}
		fine := p.needed(context.Background())
		for _, each := range waiting {
			each <- fine
		}
	}
}

func (p *page) polls() {
	for range time.Tick(130 * time.Millisecond) {
		asked(context.Background(), p.client, store+"/news")
	}
}

func eventually(work func() bool) bool {
	done := make(chan bool, 1)
	go func() { done <- work() }()
	return <-done
}

func (p *page) afterwards(ctx context.Context) bool {
	done := make(chan bool, 1)
	time.AfterFunc(time.Millisecond, func() { done <- p.needed(ctx) })
	return <-done
}

func queued(at chan chan bool) bool {
	done := make(chan bool, 1)
	at <- done
	return <-done
}

func bySocket() bool {
	address, _ := url.Parse(needed)
	connection, err := net.DialTimeout("tcp", address.Host, patience)
	if err != nil {
		return false
	}
	defer func() { _ = connection.Close() }()
	_, _ = fmt.Fprintf(connection, "GET %s HTTP/1.0\r\n\r\n", address.Path)
	line, _ := bufio.NewReader(connection).ReadString('\n')
	return strings.Contains(line, " 200 ")
}

func byChild(ctx context.Context) bool {
	return exec.CommandContext(ctx, os.Args[0], "ask").Run() == nil //nolint:gosec // itself
}

func (p *page) byHand(ctx context.Context) bool { // the context goes on, and no span tells of the call
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, needed, nil)
	if err != nil {
		return false
	}
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(request.Header))
	answer, err := p.plain.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (p *page) serve(ctx context.Context, way string) bool {
	tracer := otel.Tracer("page")
	switch way {
	case "seen":
		return p.needed(ctx)
	case "goroutine":
		return eventually(func() bool { return p.needed(ctx) })
	case "later":
		return p.afterwards(ctx)
	case "inside":
		inside, span := tracer.Start(ctx, "work")
		defer span.End()
		return p.needed(inside)
	case "todo":
		return p.needed(context.TODO())
	case "alone": // as many do, who want it to go on when the request has ended
		return eventually(func() bool { return p.needed(context.Background()) })
	case "timer":
		return p.afterwards(context.Background())
	case "queue":
		return queued(p.queue)
	case "batch":
		return queued(p.batch)
	case "unexported":
		return asked(ctx, p.unexported, needed)
	case "root":
		inside, span := tracer.Start(ctx, "work", trace.WithNewRoot())
		defer span.End()
		return p.needed(inside)
	case "nameless":
		return p.needed(trace.ContextWithSpan(ctx, noop.Span{}))
	case "plain":
		return asked(ctx, p.plain, needed)
	case "default":
		return asked(ctx, http.DefaultClient, needed)
	case "untold":
		return asked(ctx, p.untold, needed)
	case "filtered":
		return asked(ctx, p.filtered, needed)
	case "hand":
		return p.byHand(ctx)
	case "socket":
		return bySocket()
	case "child":
		return byChild(ctx)
	}
	panic(way)
}

func (p *page) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	asked(request.Context(), p.client, store+"/bestsellers") // in sight, and not needed
	writer.Header().Set("Content-Type", "application/json")
	if !p.serve(request.Context(), os.Getenv("WAY")) {
		writer.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = writer.Write([]byte("{}"))
}
