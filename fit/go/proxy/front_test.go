package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/edge"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
	"github.com/ldfi-dev/ldfi/fit/go/proxy"
)

// armed is a service that arms this fault for requests below /titles, of every device.
func armed(t *testing.T, fault string) *httptest.Server {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("version") != "" {
			time.Sleep(100 * time.Millisecond)
		}
		_, _ = fmt.Fprintf(w, `{"version":"v","lease_seconds":5,"rules":[{"experiment":"e1","salt":"s","predicate":
			[{"feature":"route","value":"/titles/*","negated":false}],"treatment":1,"control":0,"faults":[%q],
			"delay_ms":1}]}`, fault)
	}))
	t.Cleanup(service.Close)
	return service
}

// front stands before an upstream, and gives its address.
func front(t *testing.T, service string, exporter sdk.SpanExporter, upstream string) string {
	t.Helper()
	keys, _ := fit.ParseKeys(fittest.Key)
	decides, err := edge.New(edge.Config{Keys: keys, URL: service, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(decides.Close)
	target, err := proxy.ParseUpstream(upstream)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := proxy.NewFront(decides, "front", keys, exporter, 0, target)
	go func() { _ = made.Serve(listener) }()
	t.Cleanup(func() { made.Shutdown(context.Background()) })
	return "http://" + listener.Addr().String()
}

// visit has a device ask the front; what came in carries a context of somebody else's.
func visit(t *testing.T, address, device string) (status int, body string) {
	t.Helper()
	request, _ := http.NewRequest(http.MethodGet, address+"/titles/17?page=2", nil)
	request.Header.Set(edge.DeviceHeader, device)
	request.Header.Set("Baggage", "fit="+fittest.Sign('t')+",a=b")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func headersOf(t *testing.T) string {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Baggage")+" "+r.Header.Get("Traceparent"))
	}))
	t.Cleanup(upstream.Close)
	return upstream.URL
}

func TestAFrontStampsAndIsTheRootOfTheTrace(t *testing.T) {
	spans := exported{make(chan sdk.ReadOnlySpan, 99)}
	upstream := headersOf(t)
	address := front(t, armed(t, "error@api>http:GET:ratings/").URL, spans, upstream)
	deadline := time.Now().Add(5 * time.Second)
	_, body := visit(t, address, "d1")
	for ; !strings.HasPrefix(body, "fit=") && time.Now().Before(deadline); _, body = visit(t, address, "d1") {
		if !strings.HasPrefix(body, "a=b ") || !strings.HasSuffix(body, "-00") {
			t.Fatalf("before there are rules a request goes on with %s", body)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !strings.Contains(body, ",a=b 00-") || !strings.HasSuffix(body, "-01") {
		t.Fatalf("it goes on with %s", body)
	}
	called, served := <-spans.ended, <-spans.ended
	if served.SpanKind() != trace.SpanKindServer || called.SpanKind() != trace.SpanKindClient ||
		called.Parent().SpanID() != served.SpanContext().SpanID() {
		t.Fatalf("%v, %v", served, called)
	}
	told := map[string]string{}
	for _, each := range served.Attributes() {
		told[string(each.Key)] = each.Value.String()
	}
	for name, want := range map[string]string{"fit.edge": "true", "fit.experiment": "e1", "fit.arm": "treatment",
		"fit.calls": "1", "url.path": "/titles/17", "url.query": "page=2", "http.response.status_code": "200"} {
		if told[name] != want {
			t.Errorf("%s is %q, want %q", name, told[name], want)
		}
	}
}

// exported hands out spans as they are exported, those of one request in the order in which they ended.
type exported struct{ ended chan sdk.ReadOnlySpan }

func (e exported) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	for _, each := range spans {
		e.ended <- each
	}
	return nil
}

func (exported) Shutdown(context.Context) error { return nil }

func TestAFrontsOwnCallsAreInjectionPoints(t *testing.T) {
	spans, upstream := tracetest.NewInMemoryExporter(), headersOf(t)
	point := "front>http:GET:" + strings.TrimPrefix(upstream, "http://") + "/titles/*"
	address := front(t, armed(t, "status:404@"+point).URL, spans, upstream)
	deadline := time.Now().Add(9 * time.Second)
	for proof := ""; proof != "status:404 "+point+" "+upstream+"/titles/17?page=2"; proof = proofOf(spans) {
		status, body := visit(t, address, "d1")
		if time.Now().After(deadline) || (status == http.StatusNotFound) != (body == "fault injected") {
			t.Fatalf("%d %s, proof %q", status, body, proof)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// proofOf returns what fired at which point, and by what the lineage names that call: its URL.
func proofOf(spans *tracetest.InMemoryExporter) string {
	for _, span := range spans.GetSpans() {
		told := map[attribute.Key]string{}
		for _, each := range span.Attributes {
			told[each.Key] = each.Value.String()
		}
		if span.SpanKind == trace.SpanKindClient && told["fit.fired"] != "" {
			return told["fit.fired"] + " " + told["fit.point"] + " " + told["url.full"]
		}
	}
	return ""
}

func TestAFrontThatCanProveNothingOnlyTakesContextsOut(t *testing.T) {
	service := armed(t, "error@x")
	address := front(t, service.URL, nil, headersOf(t))
	for range 3 {
		if _, body := visit(t, address, "d1"); body != "a=b " {
			t.Errorf("it goes on with %s", body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
