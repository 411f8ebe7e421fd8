package fitgrpc_test

import (
	"context"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
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

func said(err error) string {
	return address.ReplaceAllString(status.Convert(err).String(), "ADDRESS")
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

func TestWhatACallCannotHaveIsNotClaimed(t *testing.T) {
	service, target := fittest.New(t, "api"), serve(t)
	point := "api>rpc:Check:" + target + "/grpc.health.v1.Health"
	client := dial(t, target, grpc.WithChainUnaryInterceptor(fitgrpc.Unary(service.Injector)))
	for _, how := range []string{"status-503", "reset", "empty", "timeout-100", "sql-lost", "refused"} {
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
	for b.Loop() {
		_ = intercept(ctx, "/shop.Prices/Get", nil, nil, channel, invoker)
	}
}
