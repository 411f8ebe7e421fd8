package edge

import (
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/internal/arrival"
	"github.com/ldfi-dev/ldfi/fit/go/internal/served"
)

// Handler makes next the edge's inside. It must stand outside of OpenTelemetry's instrumentation:
//
//	front.Handler(otelhttp.NewHandler(injector.Handler(mux), "server"))
//
// Bodies and answers pass untouched. Upgrades, of WebSockets say, are never stamped.
func (e *Edge) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		stripTrailer(request)
		onward, serving := e.admit(request)
		defer serving.End()
		next.ServeHTTP(writer, onward)
	})
}

// admit returns the request as it goes on, and where it carries a context what ends that. Where not even that can be read which came in, nothing of its
// baggage is left.
func (e *Edge) admit(request *http.Request) (onward *http.Request, serving *served.Request) {
	defer func() {
		if recover() != nil {
			onward = withBaggage(request, "")
		}
	}()
	inbound := header(request, "Baggage")
	came := arrivedAs(request)
	has := came.features
	if request.Header.Get("Upgrade") != "" {
		has = nil
	}
	done := e.decide(inbound, e.deviceOf(request), has)
	onward = request
	if done.header != inbound {
		onward = withBaggage(request, done.header)
	}
	if done.header != "" {
		onward = sparing(onward)
	}
	if e == nil || e.keys == nil {
		return onward, nil
	}
	word := &arrival.Word{Query: came.query, Again: done.again}
	if len(e.told) > 0 {
		word.Features = came.chosen(e.told)
	}
	ctx := arrival.Leave(onward.Context(), word)
	if done.context != "" {
		ctx, serving = served.Begin(fit.Carry(ctx, done.context)) // for services whose baggage nobody reads
	}
	return onward.WithContext(ctx), serving
}

// deviceOf returns which device a request comes from; empty where nobody knows.
func (e *Edge) deviceOf(request *http.Request) string {
	if e == nil {
		return ""
	}
	return e.devices.of(func(name string) []string {
		sent := request.Header[http.CanonicalHeaderKey(name)]
		text := make([]string, len(sent))
		for i, each := range sent {
			text[i] = latin1(each)
		}
		return text
	}, request.RemoteAddr)
}

// stripTrailer takes baggage out of what comes behind the body: who passes requests on may put it among headers.
func stripTrailer(request *http.Request) {
	if request.Body != nil && (request.Trailer != nil || request.ContentLength < 0) {
		delete(request.Trailer, "Baggage") // which says that it will come
		request.Body = &trailed{request.Body, request}
	}
}

// trailed is a body behind which trailers may come: the server writes them into the request that it has made, when
// all of the body is read.
type trailed struct {
	io.ReadCloser
	request *http.Request
}

func (b *trailed) Read(into []byte) (int, error) {
	read, err := b.ReadCloser.Read(into)
	if err != nil {
		delete(b.request.Trailer, "Baggage")
	}
	return read, err
}

// header joins all values of one header by commas, as RFC 9110, section 5.3 allows.
func header(request *http.Request, name string) string {
	return strings.Join(request.Header[name], ",")
}

// withBaggage returns the request with this baggage in place of its own; with none where it is empty.
func withBaggage(request *http.Request, baggage string) *http.Request {
	onward := *request
	onward.Header = maps.Clone(request.Header)
	delete(onward.Header, "Baggage")
	if baggage != "" {
		onward.Header["Baggage"] = []string{baggage}
	}
	return &onward
}

// sparing returns the request without baggage among what its Connection lists: a proxy inside would take it out.
func sparing(request *http.Request) *http.Request {
	listed := header(request, "Connection")
	if listed == "" {
		return request
	}
	isBaggage := func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), "baggage") }
	names := strings.Split(listed, ",")
	if !slices.ContainsFunc(names, isBaggage) {
		return request
	}
	onward := *request
	onward.Header = maps.Clone(request.Header)
	delete(onward.Header, "Connection")
	if left := strings.Join(slices.DeleteFunc(names, isBaggage), ","); left != "" {
		onward.Header["Connection"] = []string{left}
	}
	return &onward
}

// arrivedAs describes a request by its path as it was sent, for classes are learned from that.
func arrivedAs(request *http.Request) arrived {
	path, query := request.URL.EscapedPath(), request.URL.RawQuery
	if sent := request.RequestURI; strings.HasPrefix(sent, "/") { // whatever has been stripped of it since
		sent, _, _ = strings.Cut(sent, "#")
		path, query, _ = strings.Cut(sent, "?")
	}
	if path == "" {
		path = "/"
	}
	return arrived{request.Method, latin1(path), latin1(query), headersOf(request)}
}

func headersOf(request *http.Request) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if request.Host != "" && !yield("host", request.Host) {
			return
		}
		for name, values := range request.Header {
			for _, value := range values {
				if !yield(strings.ToLower(name), latin1(value)) {
					return
				}
			}
		}
	}
}

// latin1 reads what was sent as text, a character for each byte: so do the edges in other languages.
func latin1(sent string) string {
	for i := range len(sent) {
		if sent[i] >= 0x80 {
			letters := make([]rune, len(sent))
			for at := range len(sent) {
				letters[at] = rune(sent[at])
			}
			return string(letters)
		}
	}
	return sent
}
