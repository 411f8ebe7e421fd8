package fit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/ldfi-dev/ldfi/fit/go/internal/served"
)

// A fault may end the process that meets it, and the batch of spans with it in which its proof was to leave. So a
// mark leaves first, in both arms alike: a span of its own below the caller's call. What it says is specified in
// docs/failure-context.md and held against fit/protocol/vectors/marks.json.

const attributeMark = attribute.Key("fit.mark") // the name of its span as well

// markPatience is the longest that a call waits for its mark to leave.
var markPatience = 5 * time.Millisecond

// flushPatience is when a flush is given up that nobody waits for any longer.
const flushPatience = 30 * time.Second

// thisProcess is what marks of this process call it.
var thisProcess = NewInstance()

// NewInstance draws a name for a process, as marks have it ([Call.Instance]).
func NewInstance() string {
	var drawn [8]byte
	_, _ = rand.Read(drawn[:]) // it never fails
	return hex.EncodeToString(drawn[:])
}

// markOf returns what a mark says.
func markOf(arm Arm, experiment, instance string, fault *Fault) string {
	return strings.Join([]string{
		"1", string(arm), experiment, instance, string(fault.Kind) + "@" + fault.Point,
	}, " ")
}

// leaveMark sends the mark of a fault that is about to fire, or would, and waits until it has left, or for
// markPatience.
func (i *Injector) leaveMark(ctx context.Context, found *FailureContext, fault *Fault) {
	instance := fault.instance
	if instance == "" {
		instance = thisProcess
	}
	around := trace.ContextWithSpanContext(ctx, i.callerOf(ctx))
	said := attributeMark.String(markOf(found.Arm, found.Experiment, instance, fault))
	_, span := i.tracer().Start(around, string(attributeMark), trace.WithAttributes(said))
	span.End()
	if !span.SpanContext().IsSampled() {
		return
	}
	timer := time.NewTimer(markPatience)
	defer timer.Stop()
	select {
	case <-i.flushes.flush(i.tracerProvider()):
	case <-timer.C:
	}
}

// callerOf returns the call by which the request came into this process; the request's own span, where it came from
// outside.
func (i *Injector) callerOf(ctx context.Context) trace.SpanContext {
	here := trace.SpanFromContext(ctx)
	if request := i.spanServed(ctx); request != nil && sameTrace(request, here) {
		here = request
	}
	if span, ok := here.(interface{ Parent() trace.SpanContext }); ok && span.Parent().IsValid() {
		return span.Parent()
	}
	return here.SpanContext()
}

// spanServed returns the span of the request that a context belongs to; nil where nobody knows.
func (i *Injector) spanServed(ctx context.Context) trace.Span {
	if request := served.In(ctx); request != nil && request.Span != nil {
		return request.Span
	}
	return i.requests.span(trace.SpanContextFromContext(ctx).TraceID())
}

func sameTrace(one, other trace.Span) bool {
	return one.SpanContext().TraceID() == other.SpanContext().TraceID()
}

// flushes has all spans that have ended exported: one flush at a time, and one that waits for it, which is that of
// all marks that came in the meantime.
type flushes struct {
	running sync.Mutex

	mutex   sync.Mutex
	waiting chan struct{}
}

// flush returns what is closed when all that has ended by now was exported.
func (f *flushes) flush(provider trace.TracerProvider) <-chan struct{} {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.waiting == nil {
		f.waiting = make(chan struct{})
		go f.run(provider, f.waiting)
	}
	return f.waiting
}

func (f *flushes) run(provider trace.TracerProvider, done chan struct{}) {
	f.running.Lock()
	defer f.running.Unlock()
	defer close(done)
	defer func() { _ = recover() }() // an exporter of the application's must not end it for our sake
	f.mutex.Lock()
	f.waiting = nil
	f.mutex.Unlock()
	if exporting, ok := provider.(interface{ ForceFlush(context.Context) error }); ok {
		ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
		defer cancel()
		_ = exporting.ForceFlush(ctx)
	}
}
