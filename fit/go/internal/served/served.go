// Package served holds the request that code works for, in the context that goes along with all that it starts.
package served

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
)

// Request is one that is being served in this process, until its handler returns.
type Request struct {
	// Span is that of the request; nil before it was begun.
	Span trace.Span

	over atomic.Bool
}

type key struct{}

// Begin returns a context whose request this is, and the request. Whoever begins it ends it.
func Begin(ctx context.Context) (context.Context, *Request) {
	request := &Request{}
	return context.WithValue(ctx, key{}, request), request
}

// In returns the request that a context belongs to; nil where nobody has begun one.
func In(ctx context.Context) *Request {
	request, _ := ctx.Value(key{}).(*Request)
	return request
}

// End has the request be over. It may be nil, which nobody has begun.
func (r *Request) End() {
	if r != nil {
		r.over.Store(true)
	}
}

// Over tells whether it has ended.
func (r *Request) Over() bool { return r.over.Load() }
