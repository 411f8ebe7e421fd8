// Package fitgrpc makes the calls of a gRPC client injection points:
//
//	grpc.NewClient(target,
//		grpc.WithChainUnaryInterceptor(fitgrpc.Unary(injector)),
//		grpc.WithChainStreamInterceptor(fitgrpc.Stream(injector)),
//		grpc.WithStatsHandler(fitgrpc.ClientHandler(injector, otelgrpc.NewClientHandler())))
//
// Servers tell which request is over, so that what it has started does not fail for others:
//
//	grpc.NewServer(
//		grpc.ChainUnaryInterceptor(fitgrpc.UnaryServer(injector)),
//		grpc.ChainStreamInterceptor(fitgrpc.StreamServer(injector)),
//		grpc.StatsHandler(otelgrpc.NewServerHandler()))
//
// What fails ends with the status that grpc-go itself would give. The interceptors stand last in their
// chains, so that the application's own see the failure. gRPC begins the call's span beneath them, so
// a call that is hit gets a span of ours.
package fitgrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"go.opentelemetry.io/otel/attribute"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// Unary returns an interceptor for calls with one request and one answer.
func Unary(injector *fit.Injector) grpc.UnaryClientInterceptor {
	injector.Reaches("rpc:*")
	injector.Reaches("library:google.golang.org/grpc")
	return func(ctx context.Context, method string, request, reply any, channel *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		if injector.Armed(ctx) {
			if err := pass(ctx, injector, method, channel.Target(), options); err != nil {
				return err
			}
		}
		ctx = onward(toTarget(ctx, channel.Target()), injector, channel.Target())
		return invoke(ctx, method, request, reply, channel, options...)
	}
}

// Stream returns an interceptor for streams of either side, which fail before they are handed out.
func Stream(injector *fit.Injector) grpc.StreamClientInterceptor {
	injector.Reaches("rpc:*")
	injector.Reaches("library:google.golang.org/grpc")
	return func(ctx context.Context, description *grpc.StreamDesc, channel *grpc.ClientConn, method string,
		open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		if injector.Armed(ctx) {
			if err := pass(ctx, injector, method, channel.Target(), options); err != nil {
				return nil, err
			}
		}
		ctx = onward(toTarget(ctx, channel.Target()), injector, channel.Target())
		return open(ctx, description, channel, method, options...)
	}
}

// UnaryServer returns an interceptor that does for gRPC what [fit.Injector.Handler] does for HTTP.
func UnaryServer(injector *fit.Injector) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		ctx, ended := injector.Begin(ctx, metadata.ValueFromIncomingContext(ctx, "baggage")...)
		defer ended()
		return handle(ctx, request)
	}
}

// StreamServer does the same for streams.
func StreamServer(injector *fit.Injector) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		ctx, ended := injector.Begin(stream.Context(), metadata.ValueFromIncomingContext(stream.Context(), "baggage")...)
		defer ended()
		return handle(server, &served{stream, ctx})
	}
}

// served is a stream whose context is the request's.
type served struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *served) Context() context.Context { return s.ctx }

// pass returns the status that ends the call, or nil to make it.
func pass(ctx context.Context, injector *fit.Injector, method, target string, options []grpc.CallOption) error {
	called := authority(target)
	fault := injector.Pass(ctx, fit.Call{
		Point: func(service string) string { return fit.RPCPoint(service, method, called) },
		Can:   func(injection fit.Injection) bool { return can(ctx, injection, target, options) },
	})
	if fault == nil {
		return nil
	}
	err := carryOut(ctx, fault, target)
	fault.End(err, attribute.Int("rpc.grpc.status_code", int(status.Code(err))))
	return err
}

func can(ctx context.Context, injection fit.Injection, target string, options []grpc.CallOption) bool {
	switch word, _ := injection.Kind.Family(); word {
	case "grpc":
		return true
	case string(fit.Timeout):
		patience, ends := fit.Patience(ctx)
		return ends && patience <= injection.Longest
	}
	host, _ := hostOf(target)
	if strings.HasPrefix(target, "unix:") || strings.HasPrefix(target, "unix-abstract:") {
		host = "" // a socket of this machine's
	}
	return injection.Kind.Connecting(host) && !waitsForReady(options) // such a call waits where nothing listens
}

func waitsForReady(options []grpc.CallOption) bool {
	waits := false
	for _, option := range options {
		if chosen, ok := option.(grpc.FailFastCallOption); ok {
			waits = !chosen.FailFast
		}
	}
	return waits
}

func carryOut(ctx context.Context, fault *fit.Fault, target string) error {
	switch fault.Kind {
	case fit.Error:
		return status.Error(codes.Unavailable, "fault injected")
	case fit.Timeout:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	case fit.Delay:
		if fault.Wait(ctx) != nil {
			return status.FromContextError(ctx.Err()).Err()
		}
		return nil
	}
	if host, port := hostOf(target); fault.Kind.Connecting(host) {
		return unconnected(fault.Kind, target, host, port)
	}
	_, name := fault.Kind.Family()
	return status.Error(codeOf(name), "fault injected")
}

// unconnected makes the status of a call for which no connection can be made. A name is looked up by the channel
// itself, which finds no address for it, unless its target goes past that.
func unconnected(kind fit.Kind, target, host, port string) error {
	failure := fit.Unconnected(kind, host, port)
	var unknown *net.DNSError
	if errors.As(failure, &unknown) && !strings.HasPrefix(target, "passthrough:") {
		return status.Error(codes.Unavailable, "name resolver error: produced zero addresses")
	}
	return status.Error(codes.Unavailable, fmt.Sprintf(
		"connection error: desc = %q", "transport: Error while dialing: "+failure.Error()))
}

func hostOf(target string) (host, port string) {
	called := authority(target)
	at := strings.LastIndexByte(called, ':')
	if at < 0 || strings.HasSuffix(called, "]") {
		return strings.Trim(called, "[]"), ""
	}
	return strings.Trim(called[:at], "[]"), called[at+1:]
}

// codeOf reads a code by the name that the specification of gRPC gives it.
func codeOf(name string) codes.Code {
	var code codes.Code
	if code.UnmarshalJSON([]byte(`"`+name+`"`)) != nil {
		return codes.Unknown
	}
	return code
}
