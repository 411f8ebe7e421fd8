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
