package io.opentelemetry.javaagent.ldfi;

import static org.junit.jupiter.api.Assertions.assertNotNull;

import com.sun.management.ThreadMXBean;
import dev.ldfi.fit.Points;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.lang.management.ManagementFactory;
import java.time.Instant;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** Prints what the gate costs a call that no fault hits, in processor time: run by its name, with FIT_KEYS. */
class GateCost {
  private static final int CALLS = 1_000_000;
  private static final int ROUNDS = 9;
  private static final ThreadMXBean MEASURING = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static int hits; // so that no pass is left out

  @Test
  @SuppressWarnings("try") // a scope is held, and not asked
  void isPrinted() {
    Gate gate = Gate.installed();
    assertNotNull(gate, "it needs FIT_KEYS");
    tell("a request without a context", Gate::isArmed);
    Span call =
        SdkTracerProvider.builder().build().get("cost").spanBuilder("GET").setSpanKind(SpanKind.CLIENT)
            .setAttribute("http.request.method", "GET")
            .setAttribute("url.full", "http://ratings:8080/titles/17?page=2")
            .startSpan();
    String payload =
        "2.k1.e7c1.t." + (Instant.now().getEpochSecond() + 600) + ".refused~" + Points.hash("shop>http:GET:elsewhere/");
    Baggage carried = Baggage.builder().put("fit", payload + "." + gate.keys().sign(payload)).build();
    try (Scope request = carried.makeCurrent();
        Scope within = call.makeCurrent()) {
      tell("the context of another point", () -> Gate.isArmed() && Gate.pass(fault -> true) != null);
    }
  }

  /** Prints the least of some rounds: whatever else the machine does only adds to it. */
  private static void tell(String what, BooleanSupplier passes) {
    double nanoseconds = Double.MAX_VALUE;
    double bytes = Double.MAX_VALUE;
    for (int round = 0; round < ROUNDS; round++) {
      long allocated = MEASURING.getCurrentThreadAllocatedBytes();
      long began = MEASURING.getCurrentThreadCpuTime();
      for (int i = 0; i < CALLS; i++) {
        hits += passes.getAsBoolean() ? 1 : 0;
      }
      nanoseconds = Math.min(nanoseconds, (MEASURING.getCurrentThreadCpuTime() - began) / (double) CALLS);
      bytes = Math.min(bytes, (MEASURING.getCurrentThreadAllocatedBytes() - allocated) / (double) CALLS);
    }
    System.out.printf("%s: %.1f ns, %.1f bytes%n", what, nanoseconds, bytes);
  }
}
