package fit

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Sampler keeps every request under experiment, whatever inner says: an experiment whose traces were
// sampled away proves nothing. The first span of such a request in this service also says which
// experiment and which arm it belongs to, and every span how many calls were begun right inside it, so
// that a trace in which one of them is missing is known to have a hole.
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
	found, ok := s.injector.Current(parameters.ParentContext)
	if !ok {
		return result
	}
	result.Decision = sdk.RecordAndSample
	parent := trace.SpanFromContext(parameters.ParentContext)
	if context := parent.SpanContext(); !context.IsValid() || context.IsRemote() {
		result.Attributes = append(result.Attributes,
			attributeExperiment.String(found.Experiment), attributeArm.String(string(found.Arm)))
	} else if parameters.Kind == trace.SpanKindClient || parameters.Kind == trace.SpanKindProducer {
		s.announce(parent)
	}
	return result
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
