package dev.ldfi.fit.callers;

import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Scope;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What is said of one program and one kind.
 *
 * @param really what it saw when that really happened
 * @param injected what it saw when it was injected
 * @param fired the kind on the span of the call
 * @param calls how many spans of calls there are
 * @param root what the first span of the request says
 */
record Told(String caller, String kind, String really, String injected, String fired, int calls, String root) {
  /** Kinds that are given how long they last. */
  static final Set<String> LASTING = Set.of("timeout", "delay");

  /** What stands before a kind that is not injected, in the control arm. */
  static final String WOULD = "would ";

  private static final String IN_CONTROL = "fit.would_fire";
  private static final Set<String> CALLS = Set.of("CLIENT", "PRODUCER");

  /** Makes a call in a request under experiment: the point fails in this way. */
  static Told of(Keys keys, String caller, String kind, String point, String really, Supplier<String> call)
      throws InterruptedException {
    return of(context(keys, kind, point), caller, kind, really, call);
  }

  /** Makes a call in a request that carries this. */
  @SuppressWarnings("try") // a scope is held, and not asked
  static Told of(String context, String caller, String kind, String really, Supplier<String> call)
      throws InterruptedException {
    String injected;
    Span root;
    try (Scope carried = Baggage.builder().put("fit", context).build().makeCurrent()) {
      root = GlobalOpenTelemetry.getTracer("callers").spanBuilder("request").startSpan();
      try (Scope request = root.makeCurrent()) {
        injected = call.get();
      }
    }
    String trace = root.getSpanContext().getTraceId();
    waitForCall(trace);
    root.end();
    return recorded(new Told(caller, kind, really, injected, "", 0, ""), trace);
  }

  /** The span of a future ends after who waits for it goes on. */
  private static void waitForCall(String trace) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
    while (spans().stream().noneMatch(span -> isCall(span, trace)) && System.nanoTime() < end) {
      Thread.sleep(10);
    }
    Thread.sleep(50); // for another, where it was tried again
  }

  private static boolean isCall(Map<String, String> span, String trace) {
    return span.get(".trace").equals(trace) && CALLS.contains(span.get(".kind"));
  }

  static String context(Keys keys, String kind, String point) {
    return context(keys, kind, point, "t");
  }

  /** A context of the arm of this letter. */
  static String context(Keys keys, String kind, String point, String arm) {
    return context(keys, "e7c1", kind, point, arm);
  }

  /** One of this experiment. */
  static String context(Keys keys, String experiment, String kind, String point, String arm) {
    String how = kind.replace(':', '-') + (LASTING.contains(kind) ? "-9000" : "");
    long expires = Instant.now().getEpochSecond() + 600;
    String payload = "4.k1." + experiment + "." + arm + "." + expires + "." + how + "~" + Points.hash(point);
    return payload + "." + keys.sign(payload);
  }

  private static Told recorded(Told told, String trace) {
    List<Map<String, String>> spans = spans().stream().filter(span -> span.get(".trace").equals(trace)).toList();
    List<String> fired =
        spans.stream()
            .filter(span -> CALLS.contains(span.get(".kind")))
            .map(span -> span.containsKey(IN_CONTROL) ? WOULD + span.get(IN_CONTROL) : span.get("fit.fired"))
            .map(String::valueOf)
            .toList();
    String root =
        spans.stream()
            .filter(span -> span.get(".name").equals("request"))
            .map(span -> span.get("fit.experiment") + " " + span.get("fit.arm") + " " + span.get("fit.calls"))
            .collect(Collectors.joining());
    String kind = fired.stream().filter(each -> !each.equals("null")).findFirst().orElse(fired.isEmpty() ? "" : "null");
    return new Told(told.caller, told.kind, told.really, told.injected, kind, fired.size(), root);
  }

  /**
   * What was said of the points that can be reached. It is said after a while, and again when more libraries were
   * loaded: where something fired it is waited for, and for these libraries.
   */
  static List<String> reported(String... libraries) throws InterruptedException {
    boolean fired = spans().stream().anyMatch(span -> span.containsKey("fit.fired"));
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    List<String> reported = reach();
    while (fired && !names(reported, libraries) && System.nanoTime() < end) {
      Thread.sleep(50);
      reported = reach();
    }
    return reported;
  }

  private static boolean names(List<String> reported, String... libraries) {
    String last = reported.isEmpty() ? "" : reported.get(reported.size() - 1);
    return !last.isEmpty() && Stream.of(libraries).allMatch(each -> last.contains(">library:" + each));
  }

  private static List<String> reach() {
    return spans().stream().map(span -> span.get("fit.reach")).filter(Objects::nonNull).distinct().toList();
  }

  @SuppressWarnings("unchecked") // put there by the tests' own extension
  static Queue<Map<String, String>> spans() {
    return (Queue<Map<String, String>>) System.getProperties().get("ldfi.test.spans");
  }
}
