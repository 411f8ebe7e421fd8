package fitgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/ldfi-dev/ldfi/fit/go/fitgrpc"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

// slow is a server of the health service that waits until its caller has gone where asked to.
type slow struct{ *health.Server }

func (s slow) Check(ctx context.Context, request *grpc_health_v1.HealthCheckRequest) (
	*grpc_health_v1.HealthCheckResponse, error) {
	if request.Service == "slow" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Server.Check(ctx, request)
}

func serve(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, slow{health.NewServer()})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func dial(t *testing.T, target string, options ...grpc.DialOption) grpc_health_v1.HealthClient {
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	channel, err := grpc.NewClient(target, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = channel.Close() })
	return grpc_health_v1.NewHealthClient(channel)
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// said tells an error without its address. Of a deadline that passes, server and client learn at the same time: whose
// end of the call comes first is chance.
func said(err error) string {
	text := address.ReplaceAllString(status.Convert(err).String(), "ADDRESS")
	return strings.ReplaceAll(text, "stream terminated by RST_STREAM with error code: CANCEL", "context deadline exceeded")
}

func TestWhatCallersSeeIsWhatReallyHappens(t *testing.T) {
	service, target := fittest.New(t, "api"), serve(t)
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	nobody := closed.Addr().String()
	_ = closed.Close()
	point := "api>rpc:Check:" + target + "/grpc.health.v1.Health"
	client := dial(t, target, grpc.WithChainUnaryInterceptor(fitgrpc.Unary(service.Injector)))
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 80*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	for how, really := range map[string]func() error{
		"refused": func() error {
			_, err := dial(t, nobody).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
			return err
		},
		"timeout-9000": func() error {
			_, err := dial(t, target).Check(short(), &grpc_health_v1.HealthCheckRequest{Service: "slow"})
			return err
		},
		"grpc-NOT_FOUND": func() error {
			return status.Error(5, "fault injected")
		},
		"error": func() error {
			return status.Error(14, "fault injected")
		},
	} {
		ctx := context.Background()
		if strings.HasPrefix(how, "timeout") {
			ctx = short()
		}
		value := fittest.Sign('t', fittest.Fault{How: how, Point: point})
		_, err := client.Check(fittest.Carrying(ctx, value), &grpc_health_v1.HealthCheckRequest{})
		if want := said(really()); said(err) != want {
			t.Errorf("%s: %s\nreally %s", how, said(err), want)
		}
		if marks := service.Marks(); len(marks) != 1 || marks[0]["fit.fired"] == "" || marks[0]["fit.point"] != point {
			t.Errorf("%s: proof %v", how, marks)
		}
	}
}

// nowhere resolves every name to no address at all, as gRPC's own resolver does one that DNS does not know.
func nowhere(scheme string) grpc.DialOption {
	found := manual.NewBuilderWithScheme(scheme)
	found.InitialState(resolver.State{})
	return grpc.WithResolvers(found)
}

func TestANameThatDoesNotResolve(t *testing.T) {
	service, target := fittest.New(t, "api"), serve(t)
	named := strings.Replace(target, "127.0.0.1", "localhost", 1)
	_, really := dial(t, "dns:///nobody.invalid:81", nowhere("dns")).Check(
		context.Background(), &grpc_health_v1.HealthCheckRequest{})
	for _, to := range []string{named, target, "passthrough:///" + named} {
		point := "api>rpc:Check:" + strings.TrimPrefix(to, "passthrough:///") + "/grpc.health.v1.Health"
		client := dial(t, to, grpc.WithChainUnaryInterceptor(fitgrpc.Unary(service.Injector)))
		value := fittest.Sign('t', fittest.Fault{How: "unresolved", Point: point})
		_, err := client.Check(fittest.Carrying(context.Background(), value), &grpc_health_v1.HealthCheckRequest{})
		marks := service.Marks()
		switch to {
		case target: // an address
			if err != nil || len(marks) != 0 {
				t.Errorf("%s: %v, %v", to, err, marks)
			}
		case named:
			if said(err) != said(really) || len(marks) != 1 {
				t.Errorf("%s: %v, %v\nreally %v", to, err, marks, really)
			}
		default:
			if !strings.Contains(said(err), "dialing: dial tcp: lookup localhost: no such host") {
				t.Errorf("%s: %v", to, err)
			}
		}
	}
}

func TestWhatACallCannotHaveIsNotClaimed(t *testing.T) {
	service, target := fittest.New(t, "api"), serve(t)
	point := "api>rpc:Check:" + target + "/grpc.health.v1.Health"
	client := dial(t, target, grpc.WithChainUnaryInterceptor(fitgrpc.Unary(service.Injector)))
	for _, how := range []string{"status-503", "reset", "empty", "timeout-100", "sql-lost", "refused", "unresolved"} {
		value := fittest.Sign('t', fittest.Fault{How: how, Point: point})
		_, err := client.Check(fittest.Carrying(context.Background(), value),
			&grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
		if marks := service.Marks(); err != nil || len(marks) != 0 {
			t.Errorf("%s: %v, %v", how, err, marks)
		}
	}
}

func TestStreamsFailAndTheControlArmRecords(t *testing.T) {
	service, target := fittest.New(t, "api"), serve(t)
	point := "api>rpc:Watch:" + target + "/grpc.health.v1.Health"
	client := dial(t, target, grpc.WithChainStreamInterceptor(fitgrpc.Stream(service.Injector)))
	for arm, mark := range map[byte]string{'t': "fit.fired", 'c': "fit.would_fire"} {
		value := fittest.Sign(arm, fittest.Fault{How: "grpc-ABORTED", Point: point})
		ctx, cancel := context.WithCancel(fittest.Carrying(context.Background(), value))
		stream, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		if (err != nil) != (arm == 't') {
			t.Errorf("arm %c: %v", arm, err)
		}
		if err == nil {
			if _, err = stream.Recv(); err != nil {
				t.Error(err)
			}
		}
		cancel()
		if marks := service.Marks(); len(marks) != 1 || marks[0][mark] != "grpc:ABORTED" {
			t.Errorf("arm %c: %v", arm, marks)
		}
	}
}

// calling is a server of the health service whose handlers call another one, and leave a call behind.
type calling struct {
	*health.Server
	other        grpc_health_v1.HealthClient
	over         chan struct{}
	within, left chan error
}

func (c calling) call(ctx context.Context) {
	ask := func() error {
		_, err := c.other.Check(context.WithoutCancel(ctx), &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	c.within <- ask()
	go func() {
		<-c.over
		c.left <- ask()
	}()
}

func (c calling) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (
	*grpc_health_v1.HealthCheckResponse, error) {
	c.call(ctx)
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func (c calling) Watch(
	_ *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer,
) error {
	c.call(stream.Context())
	return nil
}

func TestWhatAProcedureLeavesBehindIsLetThrough(t *testing.T) {
	service, target := fittest.New(t, "api"), serve(t)
	value := fittest.Sign('t', fittest.Fault{How: "grpc-ABORTED", Point: "api>rpc:Check:" + target + "/grpc.health.v1.Health"})
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(fitgrpc.UnaryServer(service.Injector)),
		grpc.ChainStreamInterceptor(fitgrpc.StreamServer(service.Injector)))
	handlers := calling{
		health.NewServer(), dial(t, target, grpc.WithChainUnaryInterceptor(fitgrpc.Unary(service.Injector))),
		make(chan struct{}), make(chan error, 1), make(chan error, 1),
	}
	grpc_health_v1.RegisterHealthServer(server, handlers)
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client := dial(t, listener.Addr().String())
	ctx := metadata.AppendToOutgoingContext(context.Background(), "baggage", "a=b", "baggage", "fit="+value)
	for name, ask := range map[string]func() error{
		"unary": func() error {
			_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			return err
		},
		"stream": func() error {
			stream, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
	} {
		if err := ask(); err != nil {
			t.Fatal(name, err)
		}
		within := <-handlers.within
		handlers.over <- struct{}{}
		if left := <-handlers.left; status.Code(within) != codes.Aborted || left != nil {
			t.Errorf("%s: within %v, left behind %v", name, within, left)
		}
		marks := service.Marks()
		if len(marks) != 2 || marks[0]["fit.fired"] == "" || marks[1]["fit.outlived"] != "true" {
			t.Errorf("%s: %v", name, marks)
		}
	}
}

// heard is a server of the health service that keeps with which baggage it was asked.
type heard struct {
	*health.Server
	baggage chan string
}

func (h heard) keep(ctx context.Context) {
	h.baggage <- strings.Join(metadata.ValueFromIncomingContext(ctx, "baggage"), ",")
}

func (h heard) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (
	*grpc_health_v1.HealthCheckResponse, error) {
	h.keep(ctx)
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func (h heard) Watch(
	_ *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer,
) error {
	h.keep(stream.Context())
	return nil
}

func TestTheContextGoesToTargetsThatMayHaveIt(t *testing.T) {
	service, value := fittest.New(t, "api"), fittest.Sign('t')
	server, handler := grpc.NewServer(), heard{health.NewServer(), make(chan string, 1)}
	grpc_health_v1.RegisterHealthServer(server, handler)
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	for target, goes := range map[string]bool{
		"passthrough:///prices:50051": true, "passthrough:///api.partner.com:443": false,
	} {
		client := dial(t, target, grpc.WithChainUnaryInterceptor(fitgrpc.Unary(service.Injector)),
			grpc.WithChainStreamInterceptor(fitgrpc.Stream(service.Injector)),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
			}),
			grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithPropagators(propagation.Baggage{}))))
		byBaggage := fittest.Carrying(fittest.OfUser(context.Background()), value)
		byHand := metadata.AppendToOutgoingContext(context.Background(), "baggage", "user=u1,fit="+value)
		alone := metadata.AppendToOutgoingContext(context.Background(), "baggage", "fit="+value)
		for way, ctx := range map[string]context.Context{"by baggage": byBaggage, "by hand": byHand, "alone": alone} {
			for kind, ask := range map[string]func() error{
				"unary": func() error {
					_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
					return err
				},
				"stream": func() error {
					_, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
					return err
				},
			} {
				if err := ask(); err != nil {
					t.Fatal(err)
				}
				if got := <-handler.baggage; strings.Contains(got, value) != goes ||
					strings.Contains(got, "user=u1") == (way == "alone") {
					t.Errorf("%s %s, %s: %q", target, kind, way, got)
				}
			}
		}
	}
}

// What spans of good calls are named by is what fails, whichever of the replicas answered; and nobody there is the
// same point.
func TestACallIsNamedByItsTargetOnItsOwnSpan(t *testing.T) {
	const (
		calls = 200
		point = "api>rpc:Check:prices/grpc.health.v1.Health"
	)
	service := fittest.New(t, "api")
	var replicas []resolver.Address
	for range 3 {
		replicas = append(replicas, resolver.Address{Addr: serve(t)})
	}
	of := func(replicas ...resolver.Address) grpc_health_v1.HealthClient {
		dns := manual.NewBuilderWithScheme("dns")
		dns.InitialState(resolver.State{Addresses: replicas})
		handler := otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(service.Provider))
		return dial(t, "dns:///prices:50051", grpc.WithResolvers(dns),
			grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`),
			grpc.WithChainUnaryInterceptor(fitgrpc.Unary(service.Injector)),
			grpc.WithChainStreamInterceptor(fitgrpc.Stream(service.Injector)),
			grpc.WithStatsHandler(fitgrpc.ClientHandler(service.Injector, handler)))
	}
	ask := func(ctx context.Context, client grpc_health_v1.HealthClient) error {
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(false))
		return err
	}
	client := of(replicas...)
	answered := map[string]bool{}
	for range calls {
		if err := ask(context.Background(), client); err != nil {
			t.Fatal(err)
		}
	}
	for _, span := range service.Spans.GetSpans() {
		told := attribute.NewSet(span.Attributes...)
		if name, _ := told.Value("fit.point"); span.SpanKind == trace.SpanKindClient && name.AsString() != point {
			t.Fatalf("%s is named %q", span.Name, name.AsString())
		}
		port, known := told.Value("server.port")
		if !known { // before v0.61.0 of otelgrpc
			port, _ = told.Value("net.sock.peer.port")
		}
		answered[fmt.Sprint(port.AsInterface())] = true
	}
	service.Spans.Reset()
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	_ = closed.Close()
	if err := ask(context.Background(), of(resolver.Address{Addr: closed.Addr().String()})); err == nil {
		t.Error("somebody answers where nobody listens")
	}
	if marks := service.Marks(); len(answered) < 3 || len(marks) != 1 || marks[0]["fit.point"] != point {
		t.Errorf("answered by %v; where nobody is %v", answered, marks)
	}
	value, fired := fittest.Sign('t', fittest.Fault{How: "refused", Point: point}), 0
	for range calls {
		if ask(fittest.Carrying(context.Background(), value), client) != nil {
			fired++
		}
	}
	if marks := service.Marks(); fired != calls || len(marks) != calls || marks[0]["fit.fired"] == "" {
		t.Errorf("fired in %d of %d calls, %d marks", fired, calls, len(marks))
	}
}

func BenchmarkUnaryUnarmed(b *testing.B) {
	intercept := fitgrpc.Unary(fittest.New(b, "api").Injector)
	channel, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = channel.Close() }()
	invoker := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	ctx := fittest.OfUser(context.Background())
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_ = intercept(ctx, "/shop.Prices/Get", nil, nil, channel, invoker)
	}
}
