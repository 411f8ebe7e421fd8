package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/edge"
)

// OnwardKey is the header in which Envoy is told the baggage that a request goes on with. The filters that
// ldfi exports put it in the place of the baggage that came in: where nobody tells them any there is none, and
// a context from outside never comes in.
const OnwardKey = "x-ldfi-baggage"

// Gateway is an edge at an Envoy gateway, as an external processor (ext_proc): what [Front] is as a proxy of
// its own. It is a service of its own in traces, with a span for each request and one for the call that goes
// on; those calls are injection points.
//
// It sees headers alone. Its spans end with the headers of the answer: how the body went it cannot tell. What
// happens where Envoy does not wait for it, nobody tells it: the request has gone on without baggage.
type Gateway struct {
	extproc.UnimplementedExternalProcessorServer
	handler http.Handler
	tracing *tracing
}

// NewGateway makes one; its arguments are those of [NewFront].
func NewGateway(decides *edge.Edge, name string, keys *fit.Keys, exporter sdk.SpanExporter, sample float64) *Gateway {
	tracing := newTracing(name, keys, exporter, sample)
	if tracing == nil {
		var strips *edge.Edge
		return &Gateway{handler: strips.Handler(passOn(envoysTransport{}))}
	}
	reachesAll(tracing.injector)
	onward := passOn(tracing.calls(envoysTransport{tracing.injector}))
	return &Gateway{handler: decides.Handler(tracing.requests(onward)), tracing: tracing}
}

// passOn has a request go on, and writes how it was answered for the span of the request.
func passOn(transport http.RoundTripper) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		answer, err := transport.RoundTrip(request)
		if err != nil {
			panic(http.ErrAbortHandler) // nobody knows how it went
		}
		_ = answer.Body.Close()
		writer.WriteHeader(answer.StatusCode)
	})
}

// Shutdown exports what is left.
func (g *Gateway) Shutdown(ctx context.Context) { g.tracing.shutdown(ctx) }

// Process serves one request that comes in at Envoy.
func (g *Gateway) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	message, err := stream.Recv()
	if err != nil {
		return nil //nolint:nilerr // Envoy has ended the request, and that is no failure
	}
	came := arrivedOver(message.GetRequestHeaders())
	defer func() { _ = recover() }() // as a server does around each request
	g.handler.ServeHTTP(unseen{}, came.WithContext(context.WithValue(stream.Context(), asking{}, stream)))
	return nil
}

// arrivedOver makes the request that a server would have read.
func arrivedOver(sent *extproc.HttpHeaders) *http.Request {
	headers := headersOf(sent)
	path := headers.Get(":path")
	target, err := url.ParseRequestURI(path)
	if err != nil { // no URL, but Envoy passes it on, and a foreign context must not go with it
		sent, query, _ := strings.Cut(path, "?")
		target = &url.URL{Path: sent, RawQuery: query}
	}
	target.Scheme, target.Host = headers.Get(":scheme"), headers.Get(":authority")
	request := &http.Request{
		Method: headers.Get(":method"), URL: target, RequestURI: path, Host: headers.Get(":authority"),
		Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	for name, values := range headers {
		if !strings.HasPrefix(name, ":") {
			request.Header[name] = values
		}
	}
	if came := request.Header["X-Forwarded-For"]; len(came) > 0 { // Envoy adds the address of the connection
		said := came[len(came)-1]
		request.RemoteAddr = strings.TrimSpace(said[strings.LastIndexByte(said, ',')+1:])
	}
	if protocol := headers.Get(":protocol"); protocol != "" { // RFC 8441: an upgrade over HTTP/2
		request.Header.Set("Upgrade", protocol)
	}
	return request
}

// asking is under which key the context of a request has the stream over which Envoy asks about it.
type asking struct{}

// envoysTransport has Envoy pass requests on. An injector, if there is one, says what befalls them.
type envoysTransport struct{ injector *fit.Injector }

var errUnknown = errors.New("nobody has said how the request went")

// RoundTrip says to Envoy with which headers a request goes on, and waits for those of the answer.
func (e envoysTransport) RoundTrip(onward *http.Request) (*http.Response, error) {
	stream, ok := onward.Context().Value(asking{}).(extproc.ExternalProcessor_ProcessServer)
	if !ok {
		return nil, errUnknown
	}
	said, err := decide(onward.Context(), stream, e.injector, request{
		method: onward.Method, authority: onward.Host, path: onward.URL.EscapedPath(),
		grpc: isGRPC(onward.Header.Get("Content-Type")), patience: patienceOf(onward.Header.Get("Grpc-Timeout")),
	})
	if err != nil {
		return nil, err
	}
	if given := said.GetImmediateResponse(); given != nil {
		return answer(int(given.GetStatus().GetCode()), onward), stream.Send(said)
	}
	said.GetRequestHeaders().Response = &extproc.CommonResponse{HeaderMutation: replacedBy(onward.Header, ours)}
	if err = stream.Send(said); err != nil {
		return nil, err
	}
	status, err := answeredWith(stream)
	return answer(status, onward), err
}

// answeredWith waits for the status of the answer, and has Envoy pass it on as it is.
func answeredWith(stream extproc.ExternalProcessor_ProcessServer) (int, error) {
	message, err := stream.Recv()
	if err != nil {
		return 0, err
	}
	status, err := strconv.Atoi(headersOf(message.GetResponseHeaders()).Get(":status"))
	if err != nil {
		return 0, errUnknown
	}
	return status, stream.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extproc.HeadersResponse{},
	}})
}

func answer(status int, request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: request, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
}

// ours are the headers that are as we say, whatever came in, and the keys by which Envoy is told.
var ours = map[string]string{"Baggage": OnwardKey, "Traceparent": "traceparent", "Tracestate": "tracestate"}

// theirs is the baggage of a call that goes out: no filter stands behind us to put it in its place.
var theirs = map[string]string{"Baggage": "baggage"}

// replacedBy says to Envoy what these headers are now. It takes out before it puts in.
func replacedBy(headers http.Header, keys map[string]string) *extproc.HeaderMutation {
	made := &extproc.HeaderMutation{}
	for name, key := range keys {
		made.RemoveHeaders = append(made.RemoveHeaders, key)
		if values := headers[name]; len(values) > 0 {
			made.SetHeaders = append(made.SetHeaders, &core.HeaderValueOption{
				Header:       &core.HeaderValue{Key: key, RawValue: []byte(strings.Join(values, ","))},
				AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
			})
		}
	}
	return made
}

// unseen is what an answer is written to that Envoy gives itself.
type unseen struct{}

func (unseen) Header() http.Header            { return http.Header{} }
func (unseen) Write(body []byte) (int, error) { return len(body), nil }
func (unseen) WriteHeader(int)                {}
