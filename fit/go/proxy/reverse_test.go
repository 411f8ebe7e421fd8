package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
	"github.com/ldfi-dev/ldfi/fit/go/proxy"
)

const (
	caller      = "api"
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// standing is a proxy in front of an upstream.
type standing struct {
	address string
	callers *proxy.Callers
	spans   *tracetest.InMemoryExporter
}

func stand(t *testing.T, upstream string) *standing {
	t.Helper()
	target, err := proxy.ParseUpstream(upstream)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &standing{address: listener.Addr().String(), spans: tracetest.NewInMemoryExporter()}
	keys, _ := fit.ParseKeys(fittest.Key)
	made.callers = proxy.NewCallers(keys, made.spans)
	reverse := proxy.NewReverse(made.callers, caller, target)
	go func() { _ = reverse.Serve(listener) }()
	t.Cleanup(func() { _ = reverse.Close(); made.callers.Shutdown(context.Background()) })
	return made
}

// marks returns what the proxy has proved, by attribute, one map for each span.
func (s *standing) marks() []map[string]string {
	s.callers.Flush(context.Background())
	var found []map[string]string
	for _, span := range s.spans.GetSpans() {
		if span.Name == "fit.reach" || span.Name == "fit.mark" {
			continue
		}
		marks := map[string]string{
			"parent": span.Parent.SpanID().String(), "service": span.Resource.Attributes()[0].Value.AsString(),
		}
		for _, each := range span.Attributes {
			marks[string(each.Key)] = each.Value.String()
		}
		found = append(found, marks)
	}
	s.spans.Reset()
	return found
}

func (s *standing) point() string { return "api>http:GET:" + s.address + "/titles/*" }

func (s *standing) ask(baggage, trace string) (string, error) {
	request, _ := http.NewRequest(http.MethodGet, "http://"+s.address+"/titles/17?x=y", nil)
	if baggage != "" {
		request.Header.Set("Baggage", baggage)
	}
	if trace != "" {
		request.Header.Set("Traceparent", trace)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.Status[:3] + " " + string(body), err
}

func echo(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+" "+r.URL.String()+" "+r.Header.Get("Baggage")+r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestWhatIsAnsweredInTheUpstreamsPlace(t *testing.T) {
	proxy := stand(t, echo(t).URL)
	for how, want := range map[string]string{
		"error":         "503 fault injected",
		"status-404":    "404 fault injected",
		"refused":       "503 upstream connect error\n",
		"empty":         "200 ",
		"corrupt":       "200 \xff\x00\xfefault injected\xc3(",
		"error-n1":      "503 fault injected",
		"truncated":     "unexpected EOF",
		"reset":         "connection reset by peer",
		"timeout-50":    "",
		"grpc-ABORTED":  "",
		"sql-lost":      "",
		"redis-loading": "",
	} {
		value := fittest.Sign('t', fittest.Fault{How: how, Point: proxy.point()})
		got, err := proxy.ask("fit="+value, traceparent)
		marks := proxy.marks()
		if want == "" { // none of an HTTP call's at a proxy: it goes through, and nothing is claimed
			if err != nil || !strings.HasPrefix(got, "200 "+proxy.address) || len(marks) != 0 {
				t.Errorf("%s: %s, %v, %v", how, got, err, marks)
			}
			continue
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", how, got, want)
		}
		if how == "reset" && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a reset is %v", err)
		}
		how, _, _ = strings.Cut(strings.Replace(how, "status-", "status:", 1), "-")
		if len(marks) != 1 || marks[0]["fit.fired"] != how || marks[0]["parent"] != "b7ad6b7169203331" ||
			marks[0]["service"] != caller || marks[0]["fit.point"] != proxy.point() {
			t.Errorf("%s: proof %v", how, marks)
		}
	}
}

func TestARequestPassesAsItIs(t *testing.T) {
	proxy := stand(t, echo(t).URL)
	for _, baggage := range []string{"", "a=b", "fit=1.2.3", "fit=" + fittest.Sign('t')} {
		got, err := proxy.ask(baggage, traceparent)
		if want := "200 " + proxy.address + " /titles/17?x=y " + baggage; got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if marks := proxy.marks(); len(marks) != 0 {
		t.Errorf("proof of nothing: %v", marks)
	}
}

func TestTheControlArmAndOccurrences(t *testing.T) {
	proxy := stand(t, echo(t).URL)
	for arm, want := range map[byte][]string{
		't': {"fit.fired", "fit.let_through"}, 'c': {"fit.would_fire", "fit.let_through"},
	} {
		value := fittest.Sign(arm, fittest.Fault{How: "status-500-n1", Point: proxy.point()})
		id := map[byte]string{'t': "4", 'c': "5"}[arm]
		for i, mark := range want {
			got, _ := proxy.ask("fit="+value, strings.Replace(traceparent, "0af", "0a"+id, 1))
			if failed := strings.HasPrefix(got, "500"); failed != (mark == "fit.fired") {
				t.Errorf("arm %c, call %d: %s", arm, i, got)
			}
			if marks := proxy.marks(); len(marks) != 1 || marks[0][mark] == "" {
				t.Errorf("arm %c, call %d: %v", arm, i, marks)
			}
		}
	}
}

func TestWhatCannotBeProvedIsNotInjected(t *testing.T) {
	upstream := echo(t)
	proxy := stand(t, upstream.URL)
	value := fittest.Sign('t', fittest.Fault{How: "error", Point: proxy.point()})
	for name, trace := range map[string]string{"no trace": "", "unsampled": unsampled, "broken": "00-1-2-01"} {
		if got, err := proxy.ask("fit="+value, trace); err != nil || !strings.HasPrefix(got, "200") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if got, err := proxy.ask("fit="+value+",fit="+value, traceparent); err != nil || !strings.HasPrefix(got, "200") {
		t.Errorf("two entries: %s, %v", got, err)
	}
}

func TestADelayIsWaitedForAndThenGoesThrough(t *testing.T) {
	proxy := stand(t, echo(t).URL)
	value := fittest.Sign('t', fittest.Fault{How: "delay-150", Point: proxy.point()})
	began := time.Now()
	got, err := proxy.ask("fit="+value, traceparent)
	if took := time.Since(began); took < 150*time.Millisecond || !strings.HasPrefix(got, "200") || err != nil {
		t.Errorf("%s after %s, %v", got, took, err)
	}
	if marks := proxy.marks(); len(marks) != 1 || marks[0]["fit.fired"] != "delay" {
		t.Errorf("proof %v", marks)
	}
}

func TestRequestsThatRunAtOnceDoNotSeeEachOthersFaults(t *testing.T) {
	proxy := stand(t, echo(t).URL)
	value := fittest.Sign('t', fittest.Fault{How: "status-404", Point: proxy.point()})
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			baggage, want := "", "200"
			if i%2 == 0 {
				baggage, want = "fit="+value, "404"
			}
			if got, err := proxy.ask(baggage, traceparent); err != nil || got[:3] != want {
				t.Errorf("request %d: %s, %v", i, got, err)
			}
		})
	}
	all.Wait()
}

func TestAnUpstreamThatIsGoneIsLikeOneThatRefuses(t *testing.T) {
	upstream := echo(t)
	proxy := stand(t, upstream.URL)
	value := fittest.Sign('t', fittest.Fault{How: "refused", Point: proxy.point()})
	injected, _ := proxy.ask("fit="+value, traceparent)
	upstream.Close()
	if really, err := proxy.ask("", ""); err != nil || really != injected {
		t.Errorf("really %q, injected %q, %v", really, injected, err)
	}
}

func TestTLSPassesThroughUntouched(t *testing.T) {
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Baggage"))
	}))
	t.Cleanup(upstream.Close)
	target, _ := url.Parse(upstream.URL)
	proxy := stand(t, "http://"+target.Host)
	value := fittest.Sign('t', fittest.Fault{How: "error", Point: proxy.point()})
	request, _ := http.NewRequest(http.MethodGet, "https://"+proxy.address+"/titles/17", nil)
	request.Header.Set("Baggage", "fit="+value)
	response, err := upstream.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if body, _ := io.ReadAll(response.Body); string(body) != "fit="+value {
		t.Errorf("%s: %s", response.Status, body)
	}
}

func TestGRPCFailsWithItsOwnStatus(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	proxy := stand(t, "http://"+listener.Addr().String())
	channel, err := grpc.NewClient(proxy.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = channel.Close() })
	client := grpc_health_v1.NewHealthClient(channel)
	point := "api>rpc:Check:" + proxy.address + "/grpc.health.v1.Health"
	for how, want := range map[string]codes.Code{
		"error": codes.Unavailable, "refused": codes.Unavailable, "grpc-NOT_FOUND": codes.NotFound,
		"timeout-9000": codes.DeadlineExceeded, "status-503": codes.OK, "reset": codes.OK, "delay-50": codes.OK,
	} {
		value := fittest.Sign('t', fittest.Fault{How: how, Point: point})
		ctx := metadata.AppendToOutgoingContext(context.Background(), "baggage", "fit="+value, "traceparent", traceparent)
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		cancel()
		if got := status.Code(err); got != want {
			t.Errorf("%s: %v, want %s", how, err, want)
		}
		time.Sleep(20 * time.Millisecond) // a caller whose deadline is over does not wait for the proxy
		marks := proxy.marks()
		if proved := len(marks) == 1; proved == (how == "status-503" || how == "reset") {
			t.Errorf("%s: proof %v", how, marks)
		}
	}
	stream, err := client.Watch(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Errorf("a stream does not pass: %v", err)
	}
}

func TestABodyThatTricklesIsPassedOnAsItComes(t *testing.T) {
	over := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-over
		_, _ = io.WriteString(w, " last")
	}))
	t.Cleanup(upstream.Close)
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get("http://" + stand(t, upstream.URL).address)
	if err != nil {
		close(over)
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	first := make([]byte, 5)
	_, err = io.ReadFull(response.Body, first)
	close(over)
	rest, _ := io.ReadAll(response.Body)
	if err != nil || string(first) != "first" || string(rest) != " last" {
		t.Errorf("%q and %q, %v", first, rest, err)
	}
}
