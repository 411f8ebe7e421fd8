package io.opentelemetry.javaagent.ldfi;

import static io.opentelemetry.api.common.AttributeKey.stringKey;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import io.opentelemetry.javaagent.extension.AgentListener;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.security.SecureRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * Sends the mark of a fault that is about to fire, before it takes effect, in both arms alike: a fault may end the
 * process that meets it, and the batch of spans with it in which its proof was to leave. What a mark says is specified
 * in docs/failure-context.md. It is a span of its own below the caller's call.
 */
public final class Marking implements AgentListener {
  /** The name of the span, and of its attribute. */
  static final String NAME = "fit.mark";

  private static final AttributeKey<String> SAID = stringKey(NAME);
  private static final String INSTANCE = String.format("%016x", new SecureRandom().nextLong());

  /** The longest that a call waits for its mark, in milliseconds. Tests on busy machines are more patient. */
  private static final long WITHIN = Long.getLong("ldfi.test.mark", 5);

  /** How many flushes are under way. */
  private static final AtomicInteger FLUSHES = new AtomicInteger();

  private static volatile Supplier<CompletableResultCode> flush;

  @Override
  public void afterAgent(AutoConfiguredOpenTelemetrySdk configured) {
    SdkTracerProvider provider = configured.getOpenTelemetrySdk().getSdkTracerProvider();
    flush = provider::forceFlush;
  }

  /** What a mark says. */
  static String said(String arm, String experiment, String instance, String kind, String point) {
    return String.join(" ", "1", arm, experiment, instance, kind + "@" + point);
  }

  /**
   * Sends a mark, and waits until it has left, as long as it may.
   *
   * @param request the span of the request that the call belongs to; null where nobody knows
   */
  static void leave(
      Span call, ReadableSpan request, String arm, String experiment, String kind, String point) {
    Span mark =
        GlobalOpenTelemetry.getTracer("fit")
            .spanBuilder(NAME)
            .setParent(Context.current().with(Span.wrap(callerOf(call, request))))
            .setAttribute(SAID, said(arm, experiment, INSTANCE, kind, point))
            .startSpan();
    mark.end();
    if (mark.getSpanContext().isSampled() && flush != null) {
      flushed(flush, System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WITHIN));
    }
  }

  /** The call by which a request came into this process; the request's own span where it came from outside. */
  private static SpanContext callerOf(Span call, ReadableSpan request) {
    if (request == null && !(call instanceof ReadableSpan)) {
      return call.getSpanContext();
    }
    ReadableSpan own = request == null ? (ReadableSpan) call : request;
    SpanContext above = own.getParentSpanContext();
    return above.isValid() ? above : own.getSpanContext();
  }

  /** A flush that is under way already may have begun before the mark was there: then another one follows. */
  private static void flushed(Supplier<CompletableResultCode> flush, long end) {
    boolean alone = FLUSHES.getAndIncrement() == 0;
    try {
      boolean done = flush.get().join(end - System.nanoTime(), TimeUnit.NANOSECONDS).isDone();
      if (done && !alone) {
        flush.get().join(end - System.nanoTime(), TimeUnit.NANOSECONDS);
      }
    } finally {
      FLUSHES.getAndDecrement();
    }
  }
}
