package proxy

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/edge"
)

// Front is an edge as a reverse proxy, in front of a service in any language. It is a service of its own in
// traces: each request that comes in has a span there, under which the upstream's is, and its calls to the
// upstream are injection points.
//
// It speaks no TLS: what it cannot read it cannot take contexts out of.
type Front struct {
	server  *http.Server
	tracing *tracing
}

// NewFront makes one. Name is the service's that its spans say; sample is the share of requests that are
// traced where nobody has decided before, besides all those under experiment. Without keys or an exporter
// contexts from outside are taken out and nothing is stamped: nobody could prove anything.
func NewFront(
	decides *edge.Edge, name string, keys *fit.Keys, exporter sdk.SpanExporter, sample float64, upstream *url.URL,
) *Front {
	quiet := log.New(io.Discard, "", 0)
	tracing := newTracing(name, keys, exporter, sample)
	if tracing == nil {
		asIs := func(transport http.RoundTripper) http.RoundTripper { return transport }
		var strips *edge.Edge
		return &Front{server: newServer(strips.Handler(passing(upstream, quiet, asIs)), quiet)}
	}
	onward := passing(upstream, quiet, func(transport http.RoundTripper) http.RoundTripper {
		return tracing.calls(tracing.injector.Transport(transport))
	})
	return &Front{newServer(decides.Handler(tracing.requests(onward)), quiet), tracing}
}

// Serve accepts connections until the proxy is shut down.
func (f *Front) Serve(listener net.Listener) error { return f.server.Serve(listener) }

// Shutdown ends the proxy, and exports what is left.
func (f *Front) Shutdown(ctx context.Context) {
	_ = f.server.Shutdown(ctx)
	f.tracing.shutdown(ctx)
}
