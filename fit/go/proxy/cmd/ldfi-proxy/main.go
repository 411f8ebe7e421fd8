// Command ldfi-proxy fails calls beside their caller. See docs/howto/proxy.md.
//
//	ldfi-proxy reverse --listen 127.0.0.1:9001 --upstream http://ratings:8080 --caller api
//	ldfi-proxy reverse --table routes.json
//	ldfi-proxy envoy --listen 127.0.0.1:9002 [--caller api]
//	ldfi-proxy edge --listen 127.0.0.1:8080 --upstream http://shop:8000 --service front
//	ldfi-proxy gateway --listen 127.0.0.1:9002 --service front
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/edge"
	"github.com/ldfi-dev/ldfi/fit/go/proxy"
)

const usage = `usage: ldfi-proxy reverse --listen ADDRESS --upstream URL --caller SERVICE
       ldfi-proxy reverse --table FILE
       ldfi-proxy envoy --listen ADDRESS [--caller SERVICE]
       ldfi-proxy edge --listen ADDRESS --upstream URL --service NAME [--sample SHARE]
       ldfi-proxy gateway --listen ADDRESS --service NAME [--sample SHARE]

FIT_KEYS holds the keys, OTEL_EXPORTER_OTLP_ENDPOINT says where proofs go. Without either every request
passes, and nothing is injected. FIT_HOSTS lists who may be sent failure contexts besides private hosts. An edge has its rules from LDFI_URL, with LDFI_TOKEN.
`

// route is one line of a table: in front of which upstream to stand, and for whom.
type route struct {
	Listen   string `json:"listen"`
	Upstream string `json:"upstream"`
	Caller   string `json:"caller"`
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("ldfi-proxy: ")
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch os.Args[1] {
	case "reverse":
		err = reverse(ctx, os.Args[2:])
	case "envoy":
		err = envoy(ctx, os.Args[2:])
	case "edge":
		err = front(ctx, os.Args[2:])
	case "gateway":
		err = gateway(ctx, os.Args[2:])
	case "help", "-h", "--help":
		fmt.Print(usage)
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// callers reads the environment. What is missing or wrong is said, and requests pass all the same.
func callers(ctx context.Context) *proxy.Callers {
	return proxy.NewCallers(keysFromEnv(), exporterFromEnv(ctx))
}

// sayWithheld says that an upstream gets no failure contexts, where it is neither private nor listed.
func sayWithheld(upstream *url.URL) {
	hosts, err := fit.HostsFromEnv()
	if err != nil {
		log.Print(err)
	}
	if host := upstream.Hostname(); !hosts.Allow(host) {
		log.Printf("no failure context is sent to %s: to send it, put it into %s", host, fit.HostsVariable)
	}
}

func keysFromEnv() *fit.Keys {
	text := os.Getenv(fit.KeysVariable)
	if text == "" {
		log.Print("no " + fit.KeysVariable + ": nothing is injected")
		return nil
	}
	keys, err := fit.ParseKeys(text)
	if err != nil {
		log.Printf("nothing is injected: %v", err)
		return nil
	}
	return keys
}

func exporterFromEnv(ctx context.Context) sdk.SpanExporter {
	exporter, err := proxy.ExporterFromEnv(ctx)
	if err != nil {
		log.Printf("nothing is injected: %v", err)
		return nil
	}
	if exporter == nil {
		log.Print("no OTEL_EXPORTER_OTLP_ENDPOINT: nothing can be proved, so nothing is injected")
	}
	return exporter
}

func reverse(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("reverse", flag.ExitOnError)
	var one route
	flags.StringVar(&one.Listen, "listen", "", "address to listen at")
	flags.StringVar(&one.Upstream, "upstream", "", "where calls go, http://HOST:PORT")
	flags.StringVar(&one.Caller, "caller", "", "name of the service that calls")
	table := flags.String("table", "", "file with a JSON list of {listen, upstream, caller}")
	_ = flags.Parse(arguments)
	routes := []route{one}
	if *table != "" {
		text, err := os.ReadFile(*table)
		if err == nil {
			err = json.Unmarshal(text, &routes)
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", *table, err)
		}
	}
	found := callers(ctx)
	ended := make(chan error, len(routes))
	for _, each := range routes {
		if err := stand(each, found, ended); err != nil {
			return err
		}
	}
	return until(ctx, found, ended)
}

func stand(each route, found *proxy.Callers, ended chan<- error) error {
	upstream, err := proxy.ParseUpstream(each.Upstream)
	if err != nil {
		return err
	}
	if each.Caller == "" || each.Listen == "" {
		return errors.New("a route needs listen, upstream and caller")
	}
	listener, err := net.Listen("tcp", each.Listen)
	if err != nil {
		return err
	}
	log.Printf("%s → %s, for the calls of %s", listener.Addr(), upstream, each.Caller)
	sayWithheld(upstream)
	go func() {
		err := proxy.NewReverse(found, each.Caller, upstream).Serve(listener)
		if !errors.Is(err, http.ErrServerClosed) {
			ended <- err
		}
	}()
	return nil
}

func envoy(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("envoy", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:9002", "address to listen at")
	caller := flags.String("caller", "", "name of the service that calls, where Envoy does not say")
	_ = flags.Parse(arguments)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	found := callers(ctx)
	log.Printf("%s, an external processor for Envoy", listener.Addr())
	return asked(ctx, listener, proxy.NewProcessor(found, *caller), found)
}

// asked answers Envoy until the end.
func asked(
	ctx context.Context, listener net.Listener, processor extproc.ExternalProcessorServer,
	last interface{ Shutdown(context.Context) },
) error {
	server := grpc.NewServer()
	extproc.RegisterExternalProcessorServer(server, processor)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer server.Stop()
	return until(ctx, last, ended)
}

func gateway(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("gateway", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:9002", "address to listen at")
	service := flags.String("service", "edge", "name of the edge in traces")
	sample := flags.Float64("sample", 1, "share of the requests without a parent that are traced")
	_ = flags.Parse(arguments)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	decides, err := edge.FromEnv()
	if err != nil {
		log.Print(err)
	}
	defer decides.Close()
	made := proxy.NewGateway(decides, *service, keysFromEnv(), exporterFromEnv(ctx), *sample)
	log.Printf("%s, an edge at an Envoy gateway", listener.Addr())
	return asked(ctx, listener, made, made)
}

func front(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("edge", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "address to listen at")
	target := flags.String("upstream", "", "where requests go, http://HOST:PORT")
	service := flags.String("service", "edge", "name of the edge in traces")
	sample := flags.Float64("sample", 1, "share of the requests without a parent that are traced")
	_ = flags.Parse(arguments)
	upstream, err := proxy.ParseUpstream(*target)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	decides, err := edge.FromEnv()
	if err != nil {
		log.Print(err)
	}
	defer decides.Close()
	made := proxy.NewFront(decides, *service, keysFromEnv(), exporterFromEnv(ctx), *sample, upstream)
	log.Printf("%s → %s, an edge", listener.Addr(), upstream)
	sayWithheld(upstream)
	ended := make(chan error, 1)
	go func() { ended <- made.Serve(listener) }()
	return until(ctx, made, ended)
}

// until waits for the end, and exports the proofs that are left.
func until(ctx context.Context, found interface{ Shutdown(context.Context) }, ended <-chan error) error {
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	last, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	found.Shutdown(last)
	return err
}
