package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.Points;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** What the gate costs a call by HTTP that no fault hits, beyond the agent's own: it has to run with FIT_KEYS. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(2)
public class GateBenchmark {
  private static final int URLS = 4 * Known.REMEMBERED; // so many in turn are never remembered

  private static Tracer tracer() {
    return SdkTracerProvider.builder().build().get("cost");
  }

  private static Span call(Tracer tracer, int title) {
    return tracer
        .spanBuilder("GET")
        .setSpanKind(SpanKind.CLIENT)
        .setAttribute("http.request.method", "GET")
        .setAttribute("url.full", "http://ratings:8080/titles/" + title + "?page=2")
        .startSpan();
  }

  /** A request that carries a context of ours, or none. */
  private static Baggage carried(boolean ours) {
    if (!ours) {
      return Baggage.builder().put("plan", "gold").build();
    }
    String elsewhere = Points.hash("shop>http:GET:elsewhere/");
    String payload = "2.k1.e7c1.t." + (Instant.now().getEpochSecond() + 3600) + ".refused~" + elsewhere;
    return Baggage.builder().put("fit", payload + "." + Gate.installed().keys().sign(payload)).build();
  }

  /** A call without a context. */
  @State(Scope.Thread)
  public static class Unarmed {
    private io.opentelemetry.context.Scope current;

    @Setup(Level.Iteration)
    public void begin() {
      current = Context.root().with(carried(false)).with(call(tracer(), 17)).makeCurrent();
    }

    @TearDown(Level.Iteration)
    public void end() {
      current.close();
    }
  }

  /** A call with the context of another point, whose URL was called before. */
  @State(Scope.Thread)
  public static class Elsewhere {
    private io.opentelemetry.context.Scope current;

    @Setup(Level.Iteration)
    public void begin() {
      current = Context.root().with(carried(true)).with(call(tracer(), 17)).makeCurrent();
    }

    @TearDown(Level.Iteration)
    public void end() {
      current.close();
    }
  }

  /** Calls with the context of another point, each of a URL that was not called of late. */
  @State(Scope.Thread)
  public static class Unremembered {
    private final Context[] calls = new Context[URLS];
    private int next;

    @Setup
    public void begin() {
      Tracer tracer = tracer();
      Context request = Context.root().with(carried(true));
      for (int i = 0; i < URLS; i++) {
        calls[i] = request.with(call(tracer, i));
      }
    }

    Context next() {
      next = (next + 1) % URLS;
      return calls[next];
    }
  }

  @Benchmark
  public boolean unarmed(Unarmed request) {
    return Gate.isArmed() && Gate.pass(fault -> true) != null;
  }

  @Benchmark
  public boolean anotherPoint(Elsewhere request) {
    return Gate.isArmed() && Gate.pass(fault -> true) != null;
  }

  @Benchmark
  public boolean anotherPointUnremembered(Unremembered requests) {
    try (io.opentelemetry.context.Scope current = requests.next().makeCurrent()) {
      return current != null && Gate.isArmed() && Gate.pass(fault -> true) != null;
    }
  }

  /** What the last spends outside of the gate. */
  @Benchmark
  public boolean entering(Unremembered requests) {
    try (io.opentelemetry.context.Scope current = requests.next().makeCurrent()) {
      return current != null;
    }
  }
}
