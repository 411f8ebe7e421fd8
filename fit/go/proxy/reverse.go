package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// Reverse is a proxy in front of one upstream, for the calls of one caller: HTTP/1, HTTP/2 without TLS,
// and so gRPC. TLS passes through untouched, and nothing is injected into it.
type Reverse struct {
	callers  *Callers
	caller   string
	upstream *url.URL
	server   *http.Server
	peers    peers
}

// peers are the names by which callers have called through a proxy: what it can reach.
type peers struct {
	last  atomic.Pointer[string]
	mutex sync.Mutex
	known map[string]bool
}

const maxPeers = 16 // then all of the caller's calls are taken to pass here

// meet notes an authority that was called.
func (p *Reverse) meet(authority string) {
	if last := p.peers.last.Load(); last != nil && *last == authority {
		return
	}
	met := authority // so that what was met before costs no allocation
	p.peers.last.Store(&met)
	p.peers.mutex.Lock()
	defer p.peers.mutex.Unlock()
	if p.peers.known[authority] || len(p.peers.known) > maxPeers {
		return
	}
	p.peers.known[authority] = true
	injector := p.callers.Injector(p.caller)
	injector.Reaches("library:*") // on the wire it is all the same who calls
	kinds := append([]string{"reset", "truncated", "slow"}, httpKinds...)
	if len(p.peers.known) > maxPeers {
		injector.Reaches("http:*", kinds...)
		injector.Reaches("rpc:*", grpcKinds...)
		return
	}
	host, port := fit.SplitAuthority(authority)
	injector.Reaches(restOf(fit.HTTPPoint(p.caller, "*", host, port, "/", ""))+"*", kinds...)
	injector.Reaches(restOf(fit.RPCPoint(p.caller, "*/*", authority)), grpcKinds...)
}

// restOf cuts the caller off a point's name.
func restOf(name string) string {
	_, rest, _ := strings.Cut(name, ">")
	return rest
}

// NewReverse makes one. Every request keeps the Host that the caller sent: it is part of its point's name.
func NewReverse(callers *Callers, caller string, upstream *url.URL) *Reverse {
	reverse := &Reverse{callers: callers, caller: caller, upstream: upstream}
	reverse.peers.known = map[string]bool{}
	quiet := log.New(io.Discard, "", 0)
	reverse.server = newServer(reverse.handler(quiet), quiet)
	reverse.server.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, sync.OnceValue(fit.NewInstance))
	}
	return reverse
}

// connection is under which key the context of a request says which process calls: as far as anybody can see here,
// each connection is one of its own. Whatever comes over it later says that the process lives.
type connection struct{}

func instanceOf(ctx context.Context) string {
	if named, ok := ctx.Value(connection{}).(func() string); ok {
		return named()
	}
	return fit.NewInstance()
}

// newServer speaks HTTP/1 and, without TLS, HTTP/2.
func newServer(handler http.Handler, quiet *log.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{Handler: handler, Protocols: protocols, ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
}

// Serve accepts connections until the proxy is closed.
func (p *Reverse) Serve(listener net.Listener) error {
	return p.server.Serve(newSplit(listener, p.upstream.Host))
}

// Close ends it, at once.
func (p *Reverse) Close() error { return p.server.Close() }

func (p *Reverse) handler(quiet *log.Logger) http.Handler {
	onward := passing(p.upstream, quiet, func(transport http.RoundTripper) http.RoundTripper { return transport })
	return http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
		p.meet(r.Host)
		if len(r.Header["Baggage"]) > 0 {
			var done bool
			if r, done = p.answered(writer, r); done {
				return
			}
		}
		onward.ServeHTTP(writer, r)
	})
}

// asTheyCame are headers that Go's reverse proxy leaves out: it writes some anew, and takes out whatever a client
// lists in Connection, of which baggage and the trace go on all the same, or no experiment reaches anybody.
var asTheyCame = []string{
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "Baggage", "Traceparent", "Tracestate",
}

// passing makes the handler that passes requests on as they are, over connections of their own protocol; to an
// upstream that may have no failure context, without one.
func passing(
	upstream *url.URL, quiet *log.Logger, around func(http.RoundTripper) http.RoundTripper,
) http.Handler {
	hosts, _ := fit.HostsFromEnv()
	onward := func(multiplexed bool) *httputil.ReverseProxy {
		return &httputil.ReverseProxy{
			Rewrite: func(passing *httputil.ProxyRequest) {
				passing.Out.URL.RawQuery = passing.In.URL.RawQuery // also what Go itself would not parse
				passing.SetURL(upstream)
				passing.Out.Host = passing.In.Host
				for _, name := range asTheyCame {
					if values, ok := passing.In.Header[name]; ok {
						passing.Out.Header[name] = values
					}
				}
				passing.Out.Header = hosts.Withhold(upstream.Hostname(), passing.Out.Header)
			},
			Transport: around(newTransport(multiplexed)), ModifyResponse: slowDown, ErrorHandler: failed, ErrorLog: quiet,
			FlushInterval: longestHeld, BufferPool: &buffers{},
		}
	}
	plain, multiplexed := onward(false), onward(true)
	return http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			multiplexed.ServeHTTP(writer, r)
			return
		}
		plain.ServeHTTP(writer, r)
	})
}

// longestHeld is how long a part of a body is held back in case that more of it comes. What has no length, as
// streams of gRPC, goes on at once.
const longestHeld = 10 * time.Millisecond

// slowly is under which key the context of a request says that its answer's body is to come slowly.
type slowly struct{}

func slowDown(response *http.Response) error {
	if fault, ok := response.Request.Context().Value(slowly{}).(*fit.Fault); ok {
		fault.SlowDown(response.Request.Context(), response)
	}
	return nil
}

func newTransport(multiplexed bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!multiplexed)
	protocols.SetUnencryptedHTTP2(multiplexed)
	return &http.Transport{
		Protocols: protocols, DisableCompression: true, MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute,
	}
}

// buffers are what bodies are copied through.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return *buffer
	}
	return make([]byte, 32*1024)
}

func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }

// unavailable is what a caller behind this proxy sees where nothing listens at the upstream.
const unavailable = "upstream connect error"

// failed answers for an upstream that cannot: a connection that was torn down is torn down here, too.
func failed(writer http.ResponseWriter, r *http.Request, err error) {
	if fault, ok := r.Context().Value(slowly{}).(*fit.Fault); ok {
		fault.SlowDown(r.Context(), nil)
	}
	if errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // the caller has gone
	}
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
		tearDown(writer)
	}
	refuse(writer, isGRPC(r.Header.Get("Content-Type")))
}

func refuse(writer http.ResponseWriter, grpc bool) {
	if grpc {
		answerGRPC(writer, grpcCodes["UNAVAILABLE"], unavailable)
		return
	}
	http.Error(writer, unavailable, http.StatusServiceUnavailable)
}

// tearDown resets the connection, or the stream where several share one.
func tearDown(writer http.ResponseWriter) {
	if hijacker, ok := writer.(http.Hijacker); ok {
		if connection, _, err := hijacker.Hijack(); err == nil {
			if tcp, ok := underlying(connection).(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = connection.Close()
		}
	}
	panic(http.ErrAbortHandler)
}

// answered gives the answer in the upstream's place, if there is one to give; else it returns the request
// as it is to go on.
func (p *Reverse) answered(writer http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	ctx, ok := carrying(r.Context(), r.Header)
	if !ok {
		return r, false
	}
	passing := request{
		method: r.Method, authority: r.Host, path: r.URL.EscapedPath(),
		grpc: isGRPC(r.Header.Get("Content-Type")), patience: patienceOf(r.Header.Get("Grpc-Timeout")),
		instance: instanceOf(ctx),
	}
	fault := p.callers.Injector(p.caller).Pass(ctx, fit.Call{
		Point: passing.point,
		Can: func(injection fit.Injection) bool {
			switch injection.Kind {
			case fit.Reset:
				return !passing.grpc && r.ProtoMajor == 1
			case fit.Truncated, fit.Slow:
				return !passing.grpc && r.Method != http.MethodHead
			}
			return passing.canBoth(injection)
		},
		Instance: passing.instance,
	})
	if fault == nil {
		return r, false
	}
	if fault.Kind == fit.Slow {
		return r.WithContext(context.WithValue(r.Context(), slowly{}, fault)), false
	}
	return r, carryOut(writer, r, fault, passing)
}

var errInjected = errors.New(injectedText)

func carryOut(writer http.ResponseWriter, r *http.Request, fault *fit.Fault, passing request) bool {
	switch fault.Kind {
	case fit.Delay:
		err := fault.Wait(r.Context())
		fault.End(err)
		if err != nil {
			panic(http.ErrAbortHandler) // its caller has gone
		}
		return false
	case fit.Timeout:
		select {
		case <-r.Context().Done():
		case <-time.After(passing.patience):
		}
	case fit.Reset:
		fault.End(errInjected)
		tearDown(writer)
	}
	if passing.grpc {
		code := grpcStatus(fault.Kind)
		fault.End(errInjected, attribute.Int("rpc.grpc.status_code", code))
		answerGRPC(writer, code, injectedText)
		return true
	}
	if fault.Kind == fit.Refused {
		fault.End(errInjected, attribute.Int("http.response.status_code", http.StatusServiceUnavailable))
		refuse(writer, false)
		return true
	}
	answer := fit.AnswerOf(fault.Kind)
	end(fault, answer.Status)
	give(writer, answer)
	return true
}

func end(fault *fit.Fault, status int) {
	var err error
	if status >= http.StatusBadRequest {
		err = errInjected
	}
	fault.End(err, attribute.Int("http.response.status_code", status))
}

func give(writer http.ResponseWriter, answer fit.Answer) {
	writer.Header().Set("Content-Type", answer.ContentType)
	writer.Header().Set("Content-Length", strconv.Itoa(answer.Length))
	writer.WriteHeader(answer.Status)
	_, _ = writer.Write(answer.Body)
	if answer.Length > len(answer.Body) {
		_ = http.NewResponseController(writer).Flush()
		panic(http.ErrAbortHandler)
	}
}

// answerGRPC ends a call with a status and nothing else.
func answerGRPC(writer http.ResponseWriter, code int, message string) {
	writer.Header().Set("Content-Type", "application/grpc")
	writer.Header().Set("Grpc-Status", strconv.Itoa(code))
	writer.Header().Set("Grpc-Message", message)
	writer.WriteHeader(http.StatusOK)
}

// split takes what begins as TLS to the upstream as it is, and hands out the other connections.
type split struct {
	net.Listener
	upstream string
	plain    chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newSplit(listener net.Listener, upstream string) *split {
	made := &split{Listener: listener, upstream: upstream, plain: make(chan net.Conn), closed: make(chan struct{})}
	go made.accept()
	return made
}

func (s *split) accept() {
	for {
		connection, err := s.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			_ = s.Close()
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // as net/http does where descriptors are short
			continue
		}
		go s.sort(connection)
	}
}

const handshake = 0x16 // the first byte of TLS

func (s *split) sort(connection net.Conn) {
	reader := bufio.NewReader(connection)
	first, err := reader.Peek(1)
	if err != nil {
		_ = connection.Close()
		return
	}
	peeked := &peekedConn{connection, reader}
	if first[0] == handshake {
		s.tunnel(peeked)
		return
	}
	select {
	case s.plain <- peeked:
	case <-s.closed:
		_ = connection.Close()
	}
}

func (s *split) tunnel(near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := net.Dial("tcp", s.upstream)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	done := make(chan struct{}, 2)
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if half, ok := underlying(to).(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
		done <- struct{}{}
	}
	go pipe(far, near)
	go pipe(near, far)
	<-done
	<-done
}

func (s *split) Accept() (net.Conn, error) {
	select {
	case connection := <-s.plain:
		return connection, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *split) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Listener.Close()
}

// peekedConn is a connection of which the first byte was looked at.
type peekedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *peekedConn) Read(into []byte) (int, error) { return c.reader.Read(into) }

func underlying(connection net.Conn) net.Conn {
	if peeked, ok := connection.(*peekedConn); ok {
		return peeked.Conn
	}
	return connection
}

// ParseUpstream reads http://HOST:PORT.
func ParseUpstream(text string) (*url.URL, error) {
	upstream, err := url.Parse(text)
	if err != nil || upstream.Host == "" || (upstream.Scheme != "http" && upstream.Scheme != "https") {
		return nil, fmt.Errorf("%q is no upstream; write http://HOST:PORT", text)
	}
	return upstream, nil
}
