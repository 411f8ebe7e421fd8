package fit

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// What is written on spans, as fit/protocol/attributes.py has it.
const (
	attributePoint      = attribute.Key("fit.point")
	attributeFired      = attribute.Key("fit.fired")
	attributeWouldFire  = attribute.Key("fit.would_fire")
	attributeLetThrough = attribute.Key("fit.let_through")
	attributeOutlived   = attribute.Key("fit.outlived")
	attributeExpired    = attribute.Key("fit.expired")
	attributeExperiment = attribute.Key("fit.experiment")
	attributeArm        = attribute.Key("fit.arm")
	attributeCalls      = attribute.Key("fit.calls")
	attributeEdge       = attribute.Key("fit.edge")
	attributeAgain      = attribute.Key("fit.again")
	attributeFeature    = "fit.feature."
	eventFault          = "fit.fault"
)

// injectedText is what every answer given in a dependency's place says, so that nobody hunts for a real
// outage.
const injectedText = "fault injected"

// Call is what a wrapper knows of the call that it is about to make.
type Call struct {
	// Point names it, given the service's name.
	Point func(service string) string
	// Can tells whether such a call can fail in this way as it really would. Where it cannot, it is
	// let through and nothing is claimed. [Error] and [Delay] are not asked for.
	Can func(Injection) bool
	// Instance names the process that calls, as [NewInstance] draws names, where that is not this one; empty
	// otherwise. Marks say it.
	Instance string
}

// Fault is one that hits a call. Whoever is given it carries it out, and ends it.
type Fault struct {
	Injection
	Point string
	span  trace.Span
	ours  bool
	// instance: of another process, that calls.
	instance string
	// outlived: the call began when its request was over.
	outlived bool

	strikes func() bool // of [Slow]: writes what happens, once the headers have come
}

// Armed tells whether a request carries a context: all that is asked of one that does not.
func (i *Injector) Armed(ctx context.Context) bool {
	return i != nil && carried(ctx) != ""
}

func carried(ctx context.Context) string {
	held := baggage.FromContext(ctx)
	if held.Len() == 0 {
		return ""
	}
	return held.Member(Entry).Value()
}

// Current returns the failure context of the request that ctx belongs to, if it carries one that is to
// be obeyed.
func (i *Injector) Current(ctx context.Context) (*FailureContext, bool) {
	if !i.Armed(ctx) {
		return nil, false
	}
	return i.Verify(carried(ctx))
}

// Pass decides what happens to a call; nil lets it through. For wrappers of clients that are not in this
// module:
//
//	if injector.Armed(ctx) {
//		if fault := injector.Pass(ctx, call); fault != nil {
//			err := fault.Wait(ctx) // for Delay and Timeout; of Slow see SlowDown
//			…
//			fault.End(err)
//		}
//	}
//
// The proof goes on the current span where that is the call's own, of kind CLIENT or PRODUCER, and else
// on one of ours. Whatever goes wrong in here lets the call through.
func (i *Injector) Pass(ctx context.Context, call Call) (hit *Fault) {
	defer func() {
		if recover() != nil {
			hit = nil // a fault of ours must never become a fault of the host's
		}
	}()
	if !i.Armed(ctx) || ctx.Err() != nil {
		return nil
	}
	found, ok := i.recognize(carried(ctx))
	if !ok {
		return nil
	}
	point := call.Point(i.service)
	injection, ok := found.At(point)
	if !ok || !possible(injection, call) {
		return nil
	}
	span, ours := i.spanOf(ctx, point)
	fault := &Fault{Injection: injection, Point: point, span: span, ours: ours, instance: call.Instance}
	fault.outlived = i.outlives(ctx, found, span)
	if injection.Kind == Slow && span.IsRecording() {
		fault.strikes = func() bool { return i.fires(ctx, found, fault) }
		return fault
	}
	if !span.IsRecording() || !i.fires(ctx, found, fault) {
		fault.release()
		return nil
	}
	return fault
}

func possible(injection Injection, call Call) bool {
	return injection.Kind == Error || injection.Kind == Delay || call.Can(injection)
}

// spanOf returns the span of the call, and whether we began it.
func (i *Injector) spanOf(ctx context.Context, point string) (trace.Span, bool) {
	span := trace.SpanFromContext(ctx)
	if kinded, ok := span.(interface{ SpanKind() trace.SpanKind }); ok {
		if kind := kinded.SpanKind(); kind == trace.SpanKindClient || kind == trace.SpanKindProducer {
			return span, false
		}
	}
	_, span = i.tracer().Start(ctx, point, trace.WithSpanKind(trace.SpanKindClient))
	return span, true
}

// fires writes what happens, or would happen, on the span; before that a mark has left.
func (i *Injector) fires(ctx context.Context, found *FailureContext, fault *Fault) bool {
	span, kind := fault.span, string(fault.Kind)
	span.SetAttributes(attributePoint.String(fault.Point))
	if fault.outlived {
		span.SetAttributes(attributeOutlived.Bool(true))
		return false
	}
	if found.over() {
		span.SetAttributes(attributeExpired.Bool(true))
		return false
	}
	if fault.First > 0 && !i.counts.admits(span.SpanContext().TraceID(), fault.Point, fault.First) {
		span.SetAttributes(attributeLetThrough.Bool(true))
		return false
	}
	i.leaveMark(ctx, found, fault)
	if found.Arm == Control {
		span.SetAttributes(attributeWouldFire.String(kind))
		return false
	}
	fired := attributeFired.String(kind)
	span.SetAttributes(fired)
	span.AddEvent(eventFault, trace.WithAttributes(
		fired, attributeExperiment.String(found.Experiment), attributePoint.String(fault.Point)))
	return true
}

// Wait hangs for as long as the fault does, or until ctx is over, whose cause it then returns.
func (f *Fault) Wait(ctx context.Context) error { return hang(ctx, f.Longest) }

func hang(ctx context.Context, longest time.Duration) error {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// End says how the call ended, on a span that is ours; the call's own span is its instrumentation's.
// Attributes describe the failure.
func (f *Fault) End(err error, attributes ...attribute.KeyValue) {
	if !f.ours {
		return
	}
	if err != nil {
		f.span.SetStatus(codes.Error, "")
		f.span.SetAttributes(attribute.String("error.type", fmt.Sprintf("%T", err)))
	}
	f.span.SetAttributes(attributes...)
	f.span.End()
}

func (f *Fault) release() {
	if f.ours {
		f.span.End()
	}
}

// Patience returns how long ctx still allows; false where it has no end.
func Patience(ctx context.Context) (time.Duration, bool) {
	deadline, ok := ctx.Deadline()
	return time.Until(deadline), ok
}
