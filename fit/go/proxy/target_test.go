package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// targets are what clients ask for that no library would write; whoever stands behind must get just that.
var targets = []string{
	"/titles?q=100%&a;b=1&ok=1", "/titles?b=2&a=1", "/titles?q=%zz", "/titles?", "/titles?a=%2F+%20",
	"/a%2Fb/c", "//double//slash/", "/a/../b", "/%7Euser", "/caf%C3%A9?x=%C3%A9", "/a;p=1/b", "/x?y=a|b\"c",
}

// asked tells as what a request for a target reaches the upstream behind address.
func asked(t *testing.T, address, target string) string {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_, _ = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n", target)
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.Header.Get("X-Asked")
}

func TestWhatIsAskedForPassesAsItWasWritten(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Asked", r.RequestURI)
	}))
	t.Cleanup(upstream.Close)
	standsBefore := map[string]string{
		"reverse": stand(t, upstream.URL).address,
		"edge":    front(t, armed(t, "error@x").URL, tracetest.NewInMemoryExporter(), upstream.URL),
	}
	for name, address := range standsBefore {
		for _, target := range targets {
			if got := asked(t, address, target); got != target {
				t.Errorf("%s: %q became %q", name, target, got)
			}
		}
	}
}

// What a client lists in Connection concerns its own connection. It says nothing of what an edge adds, nor of what
// a caller's own tracing has.
func TestNoConnectionTakesOutWhatTheTraceNeeds(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Baggage", "Traceparent", "Tracestate", "X-Own", "Connection"} {
			w.Header().Set("X-Seen-"+name, strings.Join(r.Header[name], "|"))
		}
	}))
	t.Cleanup(upstream.Close)
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, address := range map[string]string{
		"reverse": stand(t, upstream.URL).address,
		"edge":    front(t, armed(t, "error@x").URL, tracetest.NewInMemoryExporter(), upstream.URL),
	} {
		request, err := http.NewRequest(http.MethodGet, "http://"+strings.TrimPrefix(address, "http://")+"/titles/17", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{
			"Connection": {"Baggage, x-own", "traceparent,TRACESTATE"}, "Baggage": {"a=b"}, "X-Own": {"1"},
			"Traceparent": {trace}, "Tracestate": {"k=v"},
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("X-Seen-Baggage"); got != "a=b" {
			t.Errorf("%s: baggage %q", name, got)
		}
		if got := answer.Header.Get("X-Seen-Traceparent"); !strings.HasPrefix(got, trace[:35]) {
			t.Errorf("%s: traceparent %q", name, got)
		}
		if got := answer.Header.Get("X-Seen-Tracestate"); got != "k=v" {
			t.Errorf("%s: tracestate %q", name, got)
		}
		if own, connection := answer.Header.Get("X-Seen-X-Own"), answer.Header.Get("X-Seen-Connection"); own+connection != "" {
			t.Errorf("%s: %q and %q went on", name, own, connection)
		}
	}
}
