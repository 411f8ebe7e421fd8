package fitgrpc

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// ClientHandler wraps OpenTelemetry's handler of calls. It writes onto each call's own span by which name that can
// be made to fail, which has the target that the channel was made for: OpenTelemetry writes the address to which
// that was resolved, and none for a call that found nobody. The channel needs the interceptors of this package.
func ClientHandler(injector *fit.Injector, inner stats.Handler) stats.Handler {
	if injector == nil {
		return inner
	}
	naming.Store(true)
	return &namer{Handler: inner, injector: injector, known: map[call]string{}}
}

// naming tells whether any channel has a handler that asks for targets.
var naming atomic.Bool

type targetKey struct{}

// toTarget leaves word for the handler beneath, which is not told the channel.
func toTarget(ctx context.Context, target string) context.Context {
	if !naming.Load() {
		return ctx
	}
	return context.WithValue(ctx, targetKey{}, target)
}

type call struct{ target, method string }

const maxNames = 4096 // known at once

type namer struct {
	stats.Handler
	injector *fit.Injector

	mutex sync.Mutex
	known map[call]string
}

// TagRPC has the inner handler begin the call's span, and names it.
func (n *namer) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	before := trace.SpanContextFromContext(ctx).SpanID()
	ctx = n.Handler.TagRPC(ctx, info)
	span := trace.SpanFromContext(ctx)
	target, ok := ctx.Value(targetKey{}).(string)
	if ok && span.IsRecording() && span.SpanContext().SpanID() != before {
		span.SetAttributes(attribute.String("fit.point", n.name(call{target, info.FullMethodName})))
	}
	return ctx
}

func (n *namer) name(of call) string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	name, known := n.known[of]
	if !known {
		if len(n.known) >= maxNames {
			clear(n.known)
		}
		name = fit.RPCPoint(n.injector.Service(), of.method, authority(of.target))
		n.known[of] = name
	}
	return name
}

// authority returns HOST:PORT of dns:///HOST:PORT.
func authority(target string) string {
	bare := strings.TrimPrefix(target, scheme.FindString(target))
	return bare[strings.LastIndexByte(bare, '/')+1:]
}
