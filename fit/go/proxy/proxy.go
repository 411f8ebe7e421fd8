// Package proxy fails calls beside their caller, for services in any language: as a reverse proxy, and as
// an external processor of Envoy and Istio. Both read the failure context of a request by themselves,
// serve the control arm, and prove what fired by a CLIENT span of their own under the caller's.
//
// Whatever goes wrong in here lets the request through. Where no proof can be written, for lack of an
// exporter or of a sampled trace, nothing is injected.
package proxy

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// request is what a proxy knows of a call that passes it.
type request struct {
	method    string
	authority string // as the caller sent it
	path      string
	grpc      bool
	patience  time.Duration // of a gRPC call that names it; else 0
	instance  string        // of the process that calls; empty where that is this one
}

func isGRPC(contentType string) bool { return strings.HasPrefix(contentType, "application/grpc") }

// patienceOf reads grpc-timeout: digits and a unit. It is 0 where there is none.
func patienceOf(text string) time.Duration {
	if len(text) < 2 {
		return 0
	}
	units := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second,
		'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}
	number, err := strconv.ParseUint(text[:len(text)-1], 10, 27) // eight digits at most
	if err != nil {
		return 0
	}
	return time.Duration(number) * units[text[len(text)-1]]
}

func (r request) point(service string) string {
	if r.grpc {
		return fit.RPCPoint(service, r.path, r.authority)
	}
	host, port := fit.SplitAuthority(r.authority)
	return fit.HTTPPoint(service, r.method, host, port, r.path, "")
}

// canBoth tells what either kind of proxy can answer.
func (r request) canBoth(injection fit.Injection) bool {
	if injection.Kind == fit.Timeout {
		return r.grpc && r.patience > 0 && r.patience <= injection.Longest
	}
	if word, _ := injection.Kind.Family(); word == "grpc" || injection.Kind == fit.Refused {
		return r.grpc || word != "grpc"
	}
	body := injection.Kind == fit.Empty || injection.Kind == fit.Corrupt
	return !r.grpc && (injection.Kind.Status() != 0 || body && r.method != http.MethodHead)
}

// Kinds that either kind of proxy has, by the word before their colon, as reports name them.
var (
	httpKinds = []string{"error", "delay", "refused", "status", "empty", "corrupt"}
	grpcKinds = []string{"error", "delay", "refused", "timeout", "grpc"}
)

var propagator = propagation.TraceContext{}

// carrying makes the context of a call that passes: its trace, and the failure context of its baggage.
// It is false for one without either: what belongs to no trace cannot be proved.
func carrying(ctx context.Context, headers http.Header) (context.Context, bool) {
	value, found := fit.FindEntry(strings.Join(headers.Values("Baggage"), ","))
	if !found {
		return ctx, false
	}
	ctx = propagator.Extract(ctx, propagation.HeaderCarrier(headers))
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, false
	}
	member, err := baggage.NewMemberRaw(fit.Entry, value)
	if err != nil {
		return ctx, false
	}
	held, err := baggage.New(member)
	return baggage.ContextWithBaggage(ctx, held), err == nil
}

// grpcCodes are gRPC's status codes by name.
var grpcCodes = func() map[string]int {
	codes := map[string]int{}
	for i, name := range strings.Fields("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND" +
		" ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE" +
		" UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED") {
		codes[name] = i
	}
	return codes
}()

// grpcStatus returns the code of an answer over gRPC that is this kind of fault.
func grpcStatus(kind fit.Kind) int {
	switch word, name := kind.Family(); {
	case word == "grpc":
		return grpcCodes[name]
	case kind == fit.Timeout:
		return grpcCodes["DEADLINE_EXCEEDED"]
	}
	return grpcCodes["UNAVAILABLE"]
}

const injectedText = "fault injected"
