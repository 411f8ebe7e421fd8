package io.opentelemetry.javaagent.ldfi;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.instrumentation.api.instrumenter.LocalRootSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The requests under experiment that this process serves, by their spans. The agent takes a request's context along to
 * whatever that starts (tasks, timers, callbacks), which still has it when the request has been answered, and then works
 * for others. Work that serves several requests at once (a batch, a cache that is filled once) cannot be told apart so.
 */
final class Requests {
  private static final int REMEMBERED = 4096;

  /** By trace: of servers that the agent does not know, whose spans the application begins itself. */
  private final Map<String, ReadableSpan> byTrace =
      new LinkedHashMap<String, ReadableSpan>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, ReadableSpan> eldest) {
          return size() > REMEMBERED;
        }
      };

  /** Notes within which span another one is begun, if it is that of a request. */
  void note(Span around) {
    if (!isServer(around)) {
      return;
    }
    String trace = around.getSpanContext().getTraceId();
    synchronized (byTrace) {
      ReadableSpan known = byTrace.get(trace);
      if (known == null || known.hasEnded()) {
        byTrace.put(trace, (ReadableSpan) around);
      }
    }
  }

  /** Whether a call that is made in this context began when its request had ended; false where nobody knows. */
  boolean isOver(Span call, Context context) {
    ReadableSpan request = of(call, context);
    return request != null && call instanceof ReadableSpan && isOver((ReadableSpan) call, request);
  }

  /** The span of the request that a call belongs to, which is made in this context; null where nobody knows. */
  ReadableSpan of(Span call, Context context) {
    Span root = LocalRootSpan.fromContextOrNull(context);
    return isServer(root) ? (ReadableSpan) root : of(call.getSpanContext().getTraceId());
  }

  private ReadableSpan of(String trace) {
    synchronized (byTrace) {
      return byTrace.get(trace);
    }
  }

  private static boolean isOver(ReadableSpan call, ReadableSpan request) {
    String trace = request.getSpanContext().getTraceId();
    return request.hasEnded()
        && trace.equals(call.getSpanContext().getTraceId())
        && call.toSpanData().getStartEpochNanos() >= request.toSpanData().getEndEpochNanos();
  }

  private static boolean isServer(Span span) {
    return span instanceof ReadableSpan && ((ReadableSpan) span).getKind() == SpanKind.SERVER;
  }
}
