package io.opentelemetry.javaagent.ldfi;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.util.Arrays;
import java.util.function.Predicate;

/** A call of which the agent makes no span, in one of ours: nothing else would tell of the point. */
public final class OwnCall {
  private final Span span;
  private final Scope scope;
  private final Known.Point point;

  private OwnCall(Span span, Known.Point point) {
    this.span = span;
    this.point = point;
    this.scope = span.makeCurrent();
  }

  /** Begins the call of a method of a class; null where nothing is injected. Whoever begins it ends it. */
  public static OwnCall begin(String method, String type) {
    Gate gate = Gate.installed();
    if (gate == null) {
      return null;
    }
    Span span = GlobalOpenTelemetry.getTracer("fit").spanBuilder(method + " " + type).startSpan();
    if (!(span instanceof ReadableSpan)) {
      return new OwnCall(span, null);
    }
    Known.Point point = gate.named((ReadableSpan) span, Arrays.asList(Names.METHOD, method, type));
    span.setAttribute(Marks.POINT, point.name);
    return new OwnCall(span, point);
  }

  /**
   * Begins asking Kafka for messages of these topics, where a fault is meant for that; null where none is. Whoever
   * begins it decides ({@link #pass}) and ends it.
   */
  public static OwnCall receiving(String topics, Predicate<Fault> can) {
    Gate gate = Gate.installed();
    Span current = Span.current();
    if (gate == null || !(current instanceof ReadableSpan) || !current.isRecording()) {
      return null;
    }
    Known.Point point = gate.named((ReadableSpan) current, Names.receiving(topics));
    if (!gate.aims(point, can)) {
      return null;
    }
    SpanBuilder builder = GlobalOpenTelemetry.getTracer("fit").spanBuilder("receive " + topics);
    return new OwnCall(builder.setSpanKind(SpanKind.CLIENT).startSpan(), point);
  }

  /** Decides what happens to it, as {@link Gate} does. */
  public Fault pass(Predicate<Fault> can) {
    return point == null ? null : Gate.pass(span, point, can);
  }

  /** Ends it, with what it failed with, if it did. */
  public void end(Throwable failure) {
    scope.close();
    if (failure != null) {
      span.recordException(failure);
      span.setStatus(StatusCode.ERROR);
    }
    span.end();
  }
}
