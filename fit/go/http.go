package fit

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
)

// Transport makes the calls of an HTTP client injection points. It stands beneath OpenTelemetry's
// instrumentation, whose span then holds the proof:
//
//	otelhttp.NewTransport(injector.Transport(nil))
//
// A nil base is [http.DefaultTransport]. Every kind of HTTP calls is native: errors of package net for
// a refused connection and a reset one, the caller's own timeout, answers that net/http itself has read,
// bodies that come slowly. The failure context goes to hosts that may have it ([Hosts]), to others none.
func (i *Injector) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	if i == nil {
		return base
	}
	i.Reaches("http:*")
	i.Reaches("library:net/http")
	return &transport{i, base}
}

type transport struct {
	injector *Injector
	base     http.RoundTripper
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	armed := t.injector.Armed(request.Context())
	if armed {
		fault := t.pass(request)
		if fault != nil && fault.Kind == Slow {
			response, err := t.base.RoundTrip(t.injector.onward(request, t.base))
			fault.SlowDown(request.Context(), response)
			return response, err
		}
		if response, err := t.answer(fault, request); response != nil || err != nil {
			if request.Body != nil {
				_ = request.Body.Close() // as RoundTrippers do, also on errors
			}
			return response, err
		}
	}
	if armed || len(request.Header["Baggage"]) > 0 {
		request = t.injector.onward(request, t.base)
	}
	return t.base.RoundTrip(request)
}

// CloseIdleConnections passes on what http.Client asks for.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func (t *transport) pass(request *http.Request) *Fault {
	return t.injector.Pass(request.Context(), Call{
		Point: func(service string) string { return requestPoint(service, request) },
		Can:   func(injection Injection) bool { return t.can(injection, request) },
	})
}

// answer answers in the dependency's place; with neither an answer nor an error the call is to be made.
func (t *transport) answer(fault *Fault, request *http.Request) (*http.Response, error) {
	if fault == nil {
		return nil, nil
	}
	response, err := t.carryOut(fault, request)
	if response == nil {
		fault.End(err)
		return nil, err
	}
	status := attribute.Int("http.response.status_code", response.StatusCode)
	if response.StatusCode < http.StatusBadRequest {
		fault.End(nil, status)
	} else {
		fault.End(failed{}, status, attribute.String("error.type", strconv.Itoa(response.StatusCode)))
	}
	return response, nil
}

// failed stands for an answer that says no.
type failed struct{}

func (failed) Error() string { return injectedText }

func requestPoint(service string, request *http.Request) string {
	port, _ := strconv.Atoi(request.URL.Port())
	host, path := request.URL.Hostname(), request.URL.EscapedPath()
	return HTTPPoint(service, method(request), host, port, path, urlTemplate(request.Context()))
}

func method(request *http.Request) string {
	if request.Method == "" {
		return http.MethodGet
	}
	return request.Method
}

// urlTemplate reads the template of the current call's URL, where its instrumentation wrote one.
func urlTemplate(ctx context.Context) string {
	span, ok := trace.SpanFromContext(ctx).(interface{ Attributes() []attribute.KeyValue })
	if !ok {
		return ""
	}
	for _, each := range span.Attributes() {
		if each.Key == "url.template" {
			return each.Value.AsString()
		}
	}
	return ""
}

func (t *transport) can(injection Injection, request *http.Request) bool {
	switch injection.Kind {
	case Reset:
		return true
	case Timeout:
		patience, ok := t.patience(request)
		return ok && patience <= injection.Longest
	}
	if injection.Kind.record().Body {
		return method(request) != http.MethodHead
	}
	return injection.Kind.Status() != 0 || injection.Kind.Connecting(request.URL.Hostname())
}

// patience returns how long the caller waits for an answer's headers; false where that has no end.
func (t *transport) patience(request *http.Request) (time.Duration, bool) {
	patience, ends := Patience(request.Context())
	if limit := t.headerTimeout(); limit > 0 && (!ends || limit < patience) {
		return limit, true
	}
	return patience, ends
}

func (t *transport) headerTimeout() time.Duration {
	if base, ok := t.base.(*http.Transport); ok {
		return base.ResponseHeaderTimeout
	}
	return 0
}

func (t *transport) carryOut(fault *Fault, request *http.Request) (*http.Response, error) {
	host, port := request.URL.Hostname(), request.URL.Port()
	switch fault.Kind {
	case Delay, Timeout:
		return nil, t.late(fault, request)
	case Reset:
		return nil, resetError(host, port)
	}
	if fault.Kind.Connecting(host) {
		return nil, Unconnected(fault.Kind, host, port)
	}
	return http.ReadResponse(bufio.NewReader(bytes.NewReader(AnswerOf(fault.Kind).Wire())), request)
}

// late hangs; a caller whose patience is over before the fault is gets its own timeout, of net/http
// itself, as from a server that never answers.
func (t *transport) late(fault *Fault, request *http.Request) error {
	if patience, ends := t.patience(request); !ends || patience > fault.Longest {
		return fault.Wait(request.Context())
	}
	silent := &http.Transport{
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: t.headerTimeout(),
		DialContext:           dialSilence,
		DialTLSContext:        dialSilence,
	}
	_, err := silent.RoundTrip(request)
	if request.Context().Err() != nil {
		// A Client says "Client.Timeout exceeded" where a timer of its own has ended as well, at the
		// same instant as the context; a call over a network takes longer to come back than that.
		time.Sleep(time.Millisecond)
	}
	return err
}

// dialSilence connects to a server that takes everything and answers nothing.
func dialSilence(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return near, nil
}

func resetError(host, port string) error {
	reset := os.NewSyscallError("read", syscall.ECONNRESET)
	return &net.OpError{Op: "read", Net: "tcp", Addr: addressOf(host, port), Err: reset}
}

// named is an address that nobody has looked up.
type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }

func addressOf(host, port string) net.Addr {
	if port == "" {
		port = "80"
	}
	number, err := strconv.Atoi(port)
	if ip := net.ParseIP(host); ip != nil && err == nil {
		return &net.TCPAddr{IP: ip, Port: number}
	}
	return named(net.JoinHostPort(host, port))
}

// Answer is one that somebody gives in place of the dependency: Length is what its header announces,
// more than the body has where it is cut.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
	Length      int
}

// AnswerOf makes the answer that is this kind of fault. Its status is 0 for a kind that is no answer.
func AnswerOf(kind Kind) Answer {
	if kind == Error {
		kind = "status:503"
	}
	if found := kind.record(); found.Answer != nil {
		body := make([]byte, 0, len(found.Answer.Body))
		for _, letter := range found.Answer.Body {
			body = append(body, byte(letter)) // a character a byte
		}
		return Answer{found.Status, "application/json", body, len(body) + found.Answer.Missing}
	}
	return Answer{kind.Status(), "text/plain", []byte(injectedText), len(injectedText)}
}

// Wire writes an answer as HTTP/1.1 sends it, with a connection that ends where the answer does.
func (a Answer) Wire() []byte {
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		a.Status, http.StatusText(a.Status), a.ContentType, a.Length)
	return append([]byte(head), a.Body...)
}

// Handler makes a request's failure context known to all that runs in its name, also where the service
// has no baggage propagator, and marks the request's span with the experiment and the arm. What runs on when
// the handler has returned works for others, and its calls are let through. It stands within OpenTelemetry's
// instrumentation:
//
//	otelhttp.NewHandler(injector.Handler(mux), "server")
//
// It changes nothing in the request: what does not verify is ignored, and taken out only at the edge.
func (i *Injector) Handler(next http.Handler) http.Handler {
	if i == nil {
		return next
	}
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if ctx, ended := i.begin(request.Context(), request.Header["Baggage"]); ctx != nil {
			defer ended()
			request = request.WithContext(ctx)
		}
		next.ServeHTTP(writer, request)
	})
}

// soleEntry reads our entry in the headers of a request, of which several are one (RFC 9110, 5.3).
func soleEntry(headers []string) string {
	joined := headers[0]
	for _, header := range headers[1:] {
		joined += "," + header
	}
	value, _ := FindEntry(joined)
	return value
}

// Carry returns a context in whose baggage this is the failure context, and no other; none where value is
// empty. It is for edges, and for whoever reads contexts from elsewhere than headers.
func Carry(ctx context.Context, value string) context.Context {
	held := baggage.FromContext(ctx).DeleteMember(Entry)
	if member, err := baggage.NewMemberRaw(Entry, value); err == nil && value != "" {
		if with, err := held.SetMember(member); err == nil {
			held = with
		}
	}
	return baggage.ContextWithBaggage(ctx, held)
}
