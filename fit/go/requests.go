package fit

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ldfi-dev/ldfi/fit/go/internal/served"
)

// Begin returns a context in which calls belong to a request, or to a job of a worker, and what ends that: a call
// that begins later is let through, also one by a goroutine, a timer or a worker that was given the context. It is
// for servers that neither [Injector.Handler] nor package fitgrpc stands in. Headers are those of the baggage with
// which the request came, where nobody has read them yet. Work that serves several requests at once (a batch, a
// single flight) cannot be told apart in this way.
func (i *Injector) Begin(ctx context.Context, headers ...string) (context.Context, func()) {
	if i != nil {
		if begun, ended := i.begin(ctx, headers); begun != nil {
			return begun, ended
		}
	}
	return ctx, func() {}
}

// begin does the same; the context is nil where it need not change.
func (i *Injector) begin(ctx context.Context, headers []string) (begun context.Context, ended func()) {
	value := carried(ctx)
	if len(headers) > 0 {
		if sent := soleEntry(headers); sent != value {
			ctx, value = Carry(ctx, sent), sent
			begun = ctx
		}
	}
	found, ok := i.Verify(value)
	if !ok {
		return begun, func() {}
	}
	if len(headers) > 0 {
		trace.SpanFromContext(ctx).SetAttributes(
			attributeExperiment.String(found.Experiment), attributeArm.String(string(found.Arm)))
	}
	found.came.Store(true)
	span := trace.SpanFromContext(ctx)
	ctx, request := served.Begin(ctx)
	request.Span = span
	i.requests.note(trace.SpanContextFromContext(ctx).TraceID(), request)
	return ctx, request.End
}

// requests are those that carry a failure context, by their trace: who makes a context anew does not always take
// along whose it is.
type requests struct {
	mutex   sync.Mutex
	byTrace recent[trace.TraceID, []request]
}

// request is one that this process serves: between [Injector.Begin] and its end, or by its span.
type request interface{ Over() bool }

// note adds a request of a trace. Of those that are over one is kept, to know that there were any.
func (r *requests) note(of trace.TraceID, one request) {
	if !of.IsValid() {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.byTrace.at(of)
	*known = append(slices.DeleteFunc(*known, func(each request) bool { return each == one || each.Over() }), one)
}

// over tells whether all requests of a trace have ended, and whether there were any.
func (r *requests) over(of trace.TraceID) (over, known bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all, known := r.byTrace.find(of)
	return known && !slices.ContainsFunc(all, func(each request) bool { return !each.Over() }), known
}

// span returns that of a request of a trace which goes on; nil where none is known by its span.
func (r *requests) span(of trace.TraceID) trace.Span {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all, _ := r.byTrace.find(of)
	for _, each := range all {
		if request, ok := each.(spanned); ok && !request.Over() {
			return request.readable
		}
	}
	return nil
}

// readable is what is looked at of a span.
type readable interface {
	trace.Span
	SpanKind() trace.SpanKind
	Parent() trace.SpanContext
	EndTime() time.Time
}

// spanned is a request by the span of its server.
type spanned struct{ readable }

func (s spanned) Over() bool { return !s.EndTime().IsZero() }

// serverSpan returns the request whose span is the current one.
func serverSpan(ctx context.Context) (spanned, bool) {
	span, ok := trace.SpanFromContext(ctx).(readable)
	return spanned{span}, ok && span.SpanKind() == trace.SpanKindServer
}

// outlives tells whether a call begins when the request that it belongs to is over; false where nobody knows.
func (i *Injector) outlives(ctx context.Context, found *FailureContext, call trace.Span) bool {
	if request := served.In(ctx); request != nil {
		return request.Over()
	}
	if request, ok := serverSpan(ctx); ok {
		return request.Over()
	}
	if over, known := i.requests.over(call.SpanContext().TraceID()); known {
		return over
	}
	span, ok := call.(readable)
	// Requests bring this context here, and nothing but its baggage was taken from one: nobody could tell which.
	return ok && !span.Parent().IsValid() && found.came.Load()
}
