package frameworks

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/edge"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

const requests = 200

// sent is what the next service was sent of one request.
type sent struct {
	contexts []string // by their experiments
	others   string   // of the baggage
	sampled  bool
}

// next is a service that remembers what it was sent.
type next struct {
	*httptest.Server
	mutex sync.Mutex
	last  http.Header
}

func listen(t *testing.T) *next {
	made := &next{}
	made.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		made.mutex.Lock()
		defer made.mutex.Unlock()
		made.last = r.Header.Clone()
		made.last["Baggage"] = append(made.last["Baggage"], r.Trailer["Baggage"]...)
	}))
	t.Cleanup(made.Close)
	return made
}

func (n *next) told(t *testing.T) sent {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.last == nil {
		t.Fatal("the next service was not asked")
	}
	found, others := fit.Entries(strings.Join(n.last["Baggage"], ","))
	told := sent{others: others, sampled: strings.HasSuffix(n.last.Get("Traceparent"), "1")}
	keys, _ := fit.ParseKeys(fittest.Key)
	for _, each := range found {
		read, err := fit.Decode(keys, each, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		told.contexts = append(told.contexts, read.Experiment)
	}
	n.last = nil
	return told
}

// armed is a control plane that arms a fault for each request of these ways, of every device.
func armed(t *testing.T) string {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("version") != "" {
			time.Sleep(100 * time.Millisecond)
		}
		_, _ = io.WriteString(w, `{"version":"v","lease_seconds":30,"rules":[{"experiment":"e1","salt":"s","predicate":
			[{"feature":"method","value":"GET","negated":false}],"treatment":1,"control":0,
			"faults":["refused@api>http:GET:ratings/"],"delay_ms":1}]}`)
	}))
	t.Cleanup(service.Close)
	return service.URL
}

// front is an edge in a framework.
type front struct {
	address string
	next    *next
	halt    string
}

// ways are how a request of the edge calls the next service. The path says which.
func ways(injector *fit.Injector, onward string) page {
	client := &http.Client{Transport: otelhttp.NewTransport(injector.Transport(nil))}
	plain := &http.Client{Transport: otelhttp.NewTransport(nil)}
	target, _ := url.Parse(onward)
	reverse := httputil.NewSingleHostReverseProxy(target)
	reverse.Transport = client.Transport
	return func(writer http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		request, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, onward+r.URL.Path, nil)
		calls := client
		switch r.URL.Path {
		case "/forwarded":
			reverse.ServeHTTP(writer, r)
			return
		case "/copied":
			request.Header["Baggage"] = append(slices.Clone(r.Header["Baggage"]), r.Trailer["Baggage"]...)
		case "/unwrapped":
			calls = plain
		case "/goroutine":
			done := make(chan struct{})
			go func() {
				defer close(done)
				call(calls, request)
			}()
			<-done
			return
		}
		call(calls, request)
	}
}

func call(client *http.Client, request *http.Request) {
	if response, err := client.Do(request); err == nil {
		_ = response.Body.Close()
	}
}

func (f *front) ask(t *testing.T, way, device string, baggages ...string) sent {
	t.Helper()
	request, _ := http.NewRequest(http.MethodGet, f.address+"/"+way, nil)
	request.Header = http.Header{
		"X-Device-Id": {device}, "Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"},
	}
	for n, each := range baggages {
		name := []string{"Baggage", "baggage", "BAGGAGE"}[n%3]
		request.Header[name] = append(request.Header[name], each)
	}
	call(http.DefaultClient, request)
	return f.next.told(t)
}

// foreign is a context that is signed for this device, of which the edge itself would die.
func (f *front) foreign(device string) string {
	sum := sha256.Sum256([]byte("ldfi scenario\n" + device))
	point := fit.HTTPPoint("edge", http.MethodGet, "127.0.0.1", port(f.next.URL), "/", "")
	return fittest.SignFor(fmt.Sprintf("s-%x", sum[:12]), 't', fittest.Fault{How: "refused", Point: point})
}

func port(address string) (number int) {
	_, _ = fmt.Sscanf(address[strings.LastIndex(address, ":"):], ":%d", &number)
	return number
}

func TestEdgesByWhatTheNextServiceIsSent(t *testing.T) {
	onward, plane := listen(t), armed(t)
	keys, _ := fit.ParseKeys(fittest.Key)
	injector := fit.New("edge", keys)
	provider := sdk.NewTracerProvider(sdk.WithSampler(injector.Sampler(sdk.ParentBased(sdk.NeverSample()))))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(injector.Propagator(
		propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	for name, server := range traced(injector) {
		t.Run(name, func(t *testing.T) {
			halt := filepath.Join(t.TempDir(), "halt")
			decides, err := edge.New(edge.Config{Keys: keys, URL: plane, Token: "t", HaltFile: halt})
			if err != nil {
				t.Fatal(err)
			}
			defer decides.Close()
			listening := httptest.NewServer(decides.Handler(server(ways(injector, onward.URL))))
			defer listening.Close()
			at := &front{listening.URL, onward, halt}
			t.Run("strips what is signed for others", at.strips)
			t.Run("strips trailers", at.stripsTrailers)
			t.Run("lets a device's own in", at.letsIn)
			t.Run("stamps, sampled", at.stamps)
			t.Run("halted", at.halted)
		})
	}
}

var all = []string{"call", "forwarded", "copied", "unwrapped", "goroutine"}

func (f *front) written(device string) [][]string {
	others := f.foreign(device)
	return [][]string{
		{"fit=" + others}, {"a=b", "fit=" + others + ",c=d"}, {"fit=" + others, "a=b"},
		{"%66it=" + others + ";p=q"}, {" fit = " + others}, {"a=b,fit=" + others + ",fit=" + others},
	}
}

func (f *front) strips(t *testing.T) {
	for _, way := range all {
		for _, baggages := range append(f.written("hers"), f.written("")...) {
			for _, device := range []string{"mine", ""} {
				told := f.ask(t, way, device, baggages...)
				if slices.ContainsFunc(told.contexts, func(each string) bool { return each != "e1" }) ||
					strings.Contains(strings.Join(baggages, ","), "a=b") != strings.Contains(told.others, "a=b") {
					t.Errorf("%s, device %q, %v: %+v", way, device, baggages, told)
				}
			}
		}
	}
}

func (f *front) stripsTrailers(t *testing.T) {
	for _, way := range all {
		f.stripsTrailersOf(t, way)
	}
}

func (f *front) stripsTrailersOf(t *testing.T, way string) {
	connection, err := net.Dial("tcp", strings.TrimPrefix(f.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_, _ = fmt.Fprintf(connection, "POST /%s HTTP/1.1\r\nHost: shop\r\nX-Device-Id: mine\r\nConnection: close\r\n"+
		"Transfer-Encoding: chunked\r\nTrailer: baggage\r\n\r\n1\r\nx\r\n0\r\nbaggage: fit=%s\r\n\r\n", way, f.foreign("hers"))
	if answered, err := bufio.NewReader(connection).ReadString('\n'); err != nil || !strings.Contains(answered, " 200 ") {
		t.Errorf("%q, %v", answered, err)
	}
	if told := f.next.told(t); len(told.contexts) > 0 {
		t.Errorf("%+v", told)
	}
}

func (f *front) letsIn(t *testing.T) {
	own := f.foreign("hers")
	experiment := strings.Split(own, ".")[2]
	for _, way := range all {
		told := f.ask(t, way, "hers", "fit="+f.foreign("another"), "a=b,fit="+own)
		stripped := way == "unwrapped" // by the propagator, which knows that nobody looks after that client
		if told.sampled != true || stripped != (len(told.contexts) == 0) ||
			!stripped && !slices.Equal(told.contexts, []string{experiment}) {
			t.Errorf("%s: %+v", way, told)
		}
	}
}

func (f *front) stamps(t *testing.T) {
	eventually(t, "it holds rules", func() bool { return len(f.ask(t, "call", "d0").contexts) == 1 })
	arrived := 0
	for n := range requests {
		way := []string{"call", "forwarded", "goroutine", "copied"}[n%4]
		told := f.ask(t, way, fmt.Sprint("d", n), "a=b,fit="+f.foreign("hers"))
		if told.sampled && slices.Equal(told.contexts, []string{"e1"}) && told.others == "a=b" {
			arrived++
		} else {
			t.Logf("%s: %+v", way, told)
		}
	}
	if arrived*1000 < requests*995 {
		t.Errorf("%d of %d arrived stamped and sampled", arrived, requests)
	}
}

func (f *front) halted(t *testing.T) {
	if err := os.WriteFile(f.halt, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stamps nothing", func() bool { return len(f.ask(t, "call", "d0").contexts) == 0 })
	for _, way := range all {
		for _, baggages := range f.written("hers") {
			if told := f.ask(t, way, "mine", baggages...); len(told.contexts) > 0 || told.sampled {
				t.Errorf("%s, %v: %+v", way, baggages, told)
			}
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("30 s have passed, and still not: %s", what)
		}
	}
}
