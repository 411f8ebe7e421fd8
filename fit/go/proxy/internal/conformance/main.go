// Command conformance lets `python -m ldfi.testing.conformance` ask this module, over the control protocol of
// docs/conformance.md: as a library, or with --proxy as the reverse proxy; its edges are then proxies, too.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/edge"
	"github.com/ldfi-dev/ldfi/fit/go/proxy"
)

const service = "conformance"

func main() {
	beside := flag.Bool("proxy", false, "calls pass the reverse proxy, and the library is not used")
	flag.Parse()
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	injector, err := fit.FromEnv(fit.WithTracerProvider(provider))
	if err != nil {
		log.Fatal(err)
	}
	keys, _ := fit.ParseKeys(os.Getenv(fit.KeysVariable))
	host := &host{injector: injector, provider: provider, spans: spans}
	if *beside {
		host.callers = proxy.NewCallers(keys, spans)
		host.proxies = map[string]string{}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /about", func(w http.ResponseWriter, _ *http.Request) { say(w, host.about()) })
	mux.HandleFunc("POST /decode", func(w http.ResponseWriter, r *http.Request) { answer(w, r, decode) })
	mux.HandleFunc("POST /name", func(w http.ResponseWriter, r *http.Request) { answer(w, r, name) })
	mux.HandleFunc("POST /edge", func(w http.ResponseWriter, r *http.Request) { answer(w, r, host.front) })
	mux.HandleFunc("POST /run", func(w http.ResponseWriter, r *http.Request) { answer(w, r, host.run) })
	log.Fatal(http.Serve(listener, mux))
}

func say(w http.ResponseWriter, what any) { _ = json.NewEncoder(w).Encode(what) }

func answer[Asked, Told any](w http.ResponseWriter, r *http.Request, with func(Asked) Told) {
	var asked Asked
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	say(w, with(asked))
}

type host struct {
	injector *fit.Injector
	provider *sdk.TracerProvider
	spans    *tracetest.InMemoryExporter

	callers *proxy.Callers // of the reverse proxy
	mutex   sync.Mutex
	proxies map[string]string // by upstream: where the proxy before it listens
}

type frontAsked struct{ Environment map[string]string }

// front sets up an edge, as in a process with these variables.
func (h *host) front(asked frontAsked) map[string]string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, name := range []string{"LDFI_URL", "LDFI_TOKEN", "FIT_HALT", "FIT_HALT_FILE", "FIT_DEVICE"} {
		_ = os.Unsetenv(name)
		if value, is := asked.Environment[name]; is {
			_ = os.Setenv(name, value)
		}
	}
	decides, err := edge.FromEnv()
	if err != nil {
		log.Fatal(err)
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(r.Header["Baggage"], ","))
	})
	if h.callers == nil {
		return map[string]string{"url": httptest.NewServer(decides.Handler(echo)).URL}
	}
	upstream, _ := url.Parse(httptest.NewServer(echo).URL)
	keys, _ := fit.ParseKeys(os.Getenv(fit.KeysVariable))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	made := proxy.NewFront(decides, "edge", keys, tracetest.NewInMemoryExporter(), 1, upstream)
	go func() { _ = made.Serve(listener) }()
	return map[string]string{"url": "http://" + listener.Addr().String()}
}

func (h *host) about() map[string]any {
	kinds := []string{"error", "delay", "refused", "reset", "timeout", "status", "empty", "truncated", "corrupt", "slow"}
	implementation := "Go"
	if h.callers != nil {
		implementation = "ldfi-proxy"
		kinds = []string{"error", "delay", "reset", "status", "empty", "truncated", "corrupt", "slow"}
	}
	return map[string]any{
		"protocol": 1, "reads": "header", "implementation": implementation, "service": service, "kinds": kinds,
		"names": []string{"http", "rpc", "db", "message"}, "edge": true,
	}
}

type decodeAsked struct {
	Cases []struct {
		Keys, Value string
		Now         float64
	}
}

func decode(asked decodeAsked) []map[string]any {
	results := make([]map[string]any, 0, len(asked.Cases))
	for _, each := range asked.Cases {
		results = append(results, decoded(each.Keys, each.Value, each.Now))
	}
	return results
}

func decoded(text, value string, now float64) map[string]any {
	keys, err := fit.ParseKeys(text)
	if err != nil {
		return map[string]any{"result": "unreadable keys"}
	}
	whole, part := math.Modf(now)
	read, err := fit.Decode(keys, value, time.Unix(int64(whole), int64(part*1e9)))
	for result, reason := range map[string]error{
		"malformed": fit.ErrMalformed, "forged": fit.ErrForged, "expired": fit.ErrExpired,
	} {
		if errors.Is(err, reason) {
			return map[string]any{"result": result}
		}
	}
	faults := []map[string]any{}
	for hash, injection := range read.Injections {
		faults = append(faults, map[string]any{
			"hash": hash, "kind": injection.Kind, "delay_ms": injection.Longest.Milliseconds(), "first": injection.First,
		})
	}
	return map[string]any{"result": "accepted", "context": map[string]any{
		"experiment": read.Experiment, "arm": read.Arm, "expires": read.Expires.Unix(), "faults": faults,
	}}
}

type nameAsked struct {
	Cases []struct {
		Kind, Caller, Method, Host, Path, Template string
		Port                                       int
		Peer, Statement, Operation, System         string
		Destination                                string
	}
}

func name(asked nameAsked) []map[string]string {
	names := make([]map[string]string, 0, len(asked.Cases))
	for _, each := range asked.Cases {
		made := ""
		switch each.Kind {
		case "http":
			made = fit.HTTPPoint(each.Caller, each.Method, each.Host, each.Port, each.Path, each.Template)
		case "rpc":
			made = fit.RPCPoint(each.Caller, each.Method, each.Peer)
		case "db":
			made = fit.DatabasePoint(each.Caller, each.Statement, each.Peer)
		case "message":
			made = fit.MessagePoint(each.Caller, each.Operation, each.System, each.Destination)
		}
		names = append(names, map[string]string{"name": made, "hash": fit.PointHash(made)})
	}
	return names
}

type runAsked struct {
	Headers   map[string]string
	URL       string
	Calls     int
	TimeoutMS int `json:"timeout_ms"`
}

type runTold struct {
	Seen  []map[string]any    `json:"seen"`
	Spans []map[string]string `json:"spans"`
}

// run serves one request that came with these headers, and makes its calls.
func (h *host) run(asked runAsked) runTold {
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	for name, value := range asked.Headers {
		request.Header.Set(name, value)
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(request.Header))
	told := runTold{Seen: []map[string]any{}, Spans: []map[string]string{}}
	ctx, span := h.provider.Tracer("host").Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	client := &http.Client{Timeout: time.Duration(asked.TimeoutMS) * time.Millisecond}
	if h.callers == nil {
		client.Transport = h.injector.Transport(&http.Transport{DisableKeepAlives: true})
	} else {
		client.Transport = h.through(asked.URL)
	}
	serve := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for range asked.Calls {
			told.Seen = append(told.Seen, h.call(r, client, asked.URL))
		}
	})
	h.injector.Handler(serve).ServeHTTP(httptest.NewRecorder(), request.WithContext(ctx))
	span.End()
	if h.callers != nil {
		h.callers.Flush(context.Background())
	}
	told.Spans = append(told.Spans, h.marks(span.SpanContext().TraceID())...)
	return told
}

// through dials the proxy in place of the upstream: the caller asks for the same Host as ever.
func (h *host) through(upstream string) http.RoundTripper {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	target, err := url.Parse(upstream)
	if err != nil {
		log.Fatal(err)
	}
	address, known := h.proxies[target.Host]
	if !known {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		address = listener.Addr().String()
		before := &url.URL{Scheme: "http", Host: target.Host}
		go func() { _ = proxy.NewReverse(h.callers, service, before).Serve(listener) }()
		h.proxies[target.Host] = address
	}
	return &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}}
}

func (h *host) call(served *http.Request, client *http.Client, url string) map[string]any {
	ctx := served.Context()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return map[string]any{"failed": err.Error()}
	}
	if h.callers != nil { // what OpenTelemetry's propagators carry along
		request.Header.Set("Baggage", served.Header.Get("Baggage"))
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(request.Header))
	}
	response, err := client.Do(request)
	if err != nil {
		return map[string]any{"failed": failure(err)}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return map[string]any{"failed": failure(err)}
	}
	return map[string]any{"status": response.StatusCode, "length": len(body)}
}

func failure(err error) string {
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated"
	case errors.As(err, &late) && late.Timeout():
		return "timeout"
	}
	return err.Error()
}

// marks returns what is written of faults on the spans of a trace.
func (h *host) marks(of trace.TraceID) []map[string]string {
	found := []map[string]string{}
	for _, span := range h.spans.GetSpans() {
		if span.SpanContext.TraceID() != of {
			continue
		}
		marks := map[string]string{}
		for _, each := range span.Attributes {
			if strings.HasPrefix(string(each.Key), "fit.") {
				marks[string(each.Key)] = each.Value.String()
			}
		}
		for _, event := range span.Events {
			marks["event"] = event.Name
		}
		if marks["fit.point"] != "" {
			found = append(found, marks)
		}
	}
	return found
}
