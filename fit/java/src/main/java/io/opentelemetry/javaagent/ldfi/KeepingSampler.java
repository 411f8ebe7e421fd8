package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.FailureContext;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.data.LinkData;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import io.opentelemetry.sdk.trace.samplers.SamplingDecision;
import io.opentelemetry.sdk.trace.samplers.SamplingResult;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Keeps every request under experiment, whatever the sampler within says: an experiment whose traces were sampled
 * away proves nothing. And it keeps marks, and what is said of points that can be reached. The first span of such a
 * request in this service also says which experiment and which arm it belongs to, and every span how many calls were
 * begun right inside it, so that a trace in which one of them is missing is known to have a hole.
 */
final class KeepingSampler implements Sampler {
  private static final Logger LOGGER = Logger.getLogger(KeepingSampler.class.getName());

  private final Sampler inner;
  private final Gate gate;

  KeepingSampler(Sampler inner, Gate gate) {
    this.inner = inner;
    this.gate = gate;
  }

  /** What goes wrong in here must not reach who begins a span, which the application may do itself. */
  @Override
  public SamplingResult shouldSample(
      Context parent, String trace, String name, SpanKind kind, Attributes attributes, List<LinkData> links) {
    try {
      return keeping(parent, trace, name, kind, attributes, links);
    } catch (RuntimeException | LinkageError ours) {
      LOGGER.log(Level.FINE, "ldfi-fit leaves a span to the sampler within, for a fault of its own", ours);
      return inner.shouldSample(parent, trace, name, kind, attributes, links);
    }
  }

  private SamplingResult keeping(
      Context parent, String trace, String name, SpanKind kind, Attributes attributes, List<LinkData> links) {
    if (name.equals(Reach.NAME) || name.equals(Marking.NAME)) {
      return SamplingResult.recordAndSample();
    }
    FailureContext found = gate.contextOf(parent);
    Span around = Span.fromContext(parent);
    boolean isFirst = !around.getSpanContext().isValid() || around.getSpanContext().isRemote();
    Attributes word = isFirst && kind == SpanKind.SERVER ? Word.takenFrom(parent) : Attributes.empty();
    if (found == null) {
      SamplingResult decided = inner.shouldSample(parent, trace, name, kind, attributes, links);
      return word.isEmpty() ? decided : new Telling(decided, word);
    }
    if (isFirst) {
      return SamplingResult.create(
          SamplingDecision.RECORD_AND_SAMPLE,
          word.toBuilder().put(Marks.EXPERIMENT, found.experiment).put(Marks.ARM, found.arm()).build());
    }
    gate.requests().note(around);
    if (kind == SpanKind.CLIENT || kind == SpanKind.PRODUCER) {
      announce(around);
    }
    return SamplingResult.recordAndSample();
  }

  private static void announce(Span around) {
    if (!(around instanceof ReadableSpan) || !around.isRecording()) {
      return;
    }
    synchronized (around) { // calls may begin at once, and each adds to what the ones before told
      Long told = ((ReadableSpan) around).getAttribute(Marks.CALLS);
      around.setAttribute(Marks.CALLS, told == null ? 1 : told + 1);
    }
  }

  /** What another sampler has decided, and more to write on the span. */
  private static final class Telling implements SamplingResult {
    private final SamplingResult decided;
    private final Attributes more;

    Telling(SamplingResult decided, Attributes more) {
      this.decided = decided;
      this.more = more;
    }

    @Override
    public SamplingDecision getDecision() {
      return decided.getDecision();
    }

    @Override
    public Attributes getAttributes() {
      return decided.getAttributes().toBuilder().putAll(more).build();
    }

    @Override
    public TraceState getUpdatedTraceState(TraceState parent) {
      return decided.getUpdatedTraceState(parent);
    }
  }

  @Override
  public String getDescription() {
    return "ldfi-fit(" + inner.getDescription() + ")";
  }
}
