package fit

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/ldfi-dev/ldfi/fit/go/internal/arrival"
)

// Sampler keeps every request under experiment, every report and every mark, whatever inner says: an experiment whose traces were
// sampled away proves nothing. The first span of such a request in this service also says which
// experiment and which arm it belongs to, and every span how many calls were begun right inside it, so
// that a trace in which one of them is missing is known to have a hole. The first span behind an edge says
// that it is one.
func (i *Injector) Sampler(inner sdk.Sampler) sdk.Sampler {
	if i == nil {
		return inner
	}
	return &sampler{injector: i, inner: inner}
}

type sampler struct {
	injector *Injector
	inner    sdk.Sampler
	mutex    sync.Mutex // a span may make calls at once, and each adds to what the ones before told
}

func (s *sampler) ShouldSample(parameters sdk.SamplingParameters) sdk.SamplingResult {
	result := s.inner.ShouldSample(parameters)
	for _, each := range parameters.Attributes {
		switch each.Key {
		case attributeReach:
			result.Decision = sdk.RecordAndSample
		case attributeMark:
			result.Decision = sdk.RecordAndSample
			return result
		}
	}
	result.Attributes = append(result.Attributes, atTheEdge(parameters)...)
	found, ok := s.injector.Current(parameters.ParentContext)
	if !ok {
		return result
	}
	result.Decision = sdk.RecordAndSample
	s.noteRequest(parameters, found)
	parent := trace.SpanFromContext(parameters.ParentContext)
	if context := parent.SpanContext(); !context.IsValid() || context.IsRemote() {
		result.Attributes = append(result.Attributes,
			attributeExperiment.String(found.Experiment), attributeArm.String(string(found.Arm)))
	} else if parameters.Kind == trace.SpanKindClient || parameters.Kind == trace.SpanKindProducer {
		s.announce(parent)
	}
	return result
}

// noteRequest has a request be known by the span of its server, from the first that is begun within it.
func (s *sampler) noteRequest(parameters sdk.SamplingParameters, found *FailureContext) {
	if parameters.Kind == trace.SpanKindServer {
		found.came.Store(true)
	}
	if request, ok := serverSpan(parameters.ParentContext); ok {
		s.injector.requests.note(parameters.TraceID, request)
	}
}

// atTheEdge says what the span of a request shall carry that has just come in at an edge.
func atTheEdge(parameters sdk.SamplingParameters) []attribute.KeyValue {
	if parent := trace.SpanContextFromContext(parameters.ParentContext); parameters.Kind != trace.SpanKindServer ||
		(parent.IsValid() && !parent.IsRemote()) {
		return nil
	}
	word := arrival.Take(parameters.ParentContext)
	if word == nil {
		return nil
	}
	told := []attribute.KeyValue{attributeEdge.Bool(true)}
	if word.Query != "" {
		told = append(told, attribute.String("url.query", word.Query))
	}
	for name, value := range word.Features {
		told = append(told, attribute.String(attributeFeature+name, value))
	}
	if word.Again {
		told = append(told, attributeAgain.Bool(true))
	}
	return told
}

func (s *sampler) Description() string { return "fit.Sampler(" + s.inner.Description() + ")" }

// announce writes on a span that one call more was begun inside it: its span will come, or was lost.
func (s *sampler) announce(around trace.Span) {
	readable, ok := around.(interface{ Attributes() []attribute.KeyValue })
	if !ok || !around.IsRecording() {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	told := int64(0)
	for _, each := range readable.Attributes() {
		if each.Key == attributeCalls {
			told = each.Value.AsInt64()
		}
	}
	around.SetAttributes(attributeCalls.Int64(told + 1))
}
