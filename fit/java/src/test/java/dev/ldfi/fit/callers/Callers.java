package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Scope;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;

/**
 * Runs under the agent: each program calls a dependency to which something really happens, and then one that is
 * well while the same is injected. A line of JSON for each says what was seen and what was recorded.
 */
public final class Callers {
  private static final String URL_OF = "http://%s/x";
  private static final int AT_ONCE = 9;
  private static final Set<String> LASTING = Set.of("timeout", "delay");
  private static final Duration PATIENCE = Duration.ofSeconds(1);
  private static final Duration LONG = Duration.ofSeconds(60); // for what ends by itself, on a busy machine, too

  private final Keys keys;
  private final List<String> kinds;
  private final String well;

  private Callers(Keys keys, List<String> kinds, String well) {
    this.keys = keys;
    this.kinds = kinds;
    this.well = well;
  }

  public static void main(String[] arguments) throws Exception {
    Callers callers = new Callers(Keys.parse(arguments[0]), List.of(arguments[1].split(" ")), Dependency.at("ok"));
    ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
    List<Future<List<Told>>> running = new ArrayList<>();
    Http.callers().forEach((name, caller) -> running.add(pool.submit(() -> callers.all(name, caller))));
    for (Future<List<Told>> each : running) {
      each.get().forEach(told -> System.out.println(new Gson().toJson(told)));
    }
    System.exit(0);
  }

  /**
   * What is said of one program and one kind.
   *
   * @param fired the kind on the span of the call
   * @param calls how many spans of calls there are
   * @param root what the first span of the request says
   */
  record Told(String caller, String kind, String really, String injected, String fired, int calls, String root) {}

  private List<Told> all(String name, Http.Caller caller) throws Exception {
    seen(caller, well, LONG); // loads classes, for longer than the callers may be patient
    List<Told> all = new ArrayList<>();
    for (String kind : kinds) {
      Duration patience = LASTING.contains(kind) ? PATIENCE : LONG;
      String really = seen(caller, Dependency.at(kind), patience);
      all.add(injected(name, caller, kind, patience, really));
    }
    return all;
  }

  @SuppressWarnings("try") // a scope is held, and not asked
  private Told injected(String name, Http.Caller caller, String kind, Duration patience, String really) throws Exception {
    String method = name.endsWith("body") ? "POST" : "GET";
    Baggage baggage = Baggage.builder().put("fit", context(kind, method)).build();
    String injected;
    Span root;
    try (Scope carried = baggage.makeCurrent()) {
      root = GlobalOpenTelemetry.getTracer("callers").spanBuilder("request").startSpan();
      try (Scope request = root.makeCurrent()) {
        injected = seen(caller, well, patience);
      }
    }
    Thread.sleep(50); // the span of a future ends after who waits for it goes on
    root.end();
    return recorded(new Told(name, kind, really, injected, "", 0, ""), root.getSpanContext().getTraceId());
  }

  private String context(String kind, String method) {
    String how = kind.replace(':', '-') + (LASTING.contains(kind) ? "-9000" : "");
    int port = Integer.parseInt(well.split(":")[1]);
    String point = Points.http("callers", method, "127.0.0.1", port, "/x", "");
    String payload =
        "2.k1.e7c1.t." + (Instant.now().getEpochSecond() + 60) + "." + how + "~" + Points.hash(point);
    return payload + "." + keys.sign(payload);
  }

  private static Told recorded(Told told, String trace) {
    List<Map<String, String>> spans =
        spans().stream().filter(span -> span.get(".trace").equals(trace)).toList();
    List<String> fired =
        spans.stream()
            .filter(span -> span.get(".kind").equals("CLIENT"))
            .map(span -> String.valueOf(span.get("fit.fired")))
            .toList();
    String root =
        spans.stream()
            .filter(span -> span.get(".name").equals("request"))
            .map(span -> span.get("fit.experiment") + " " + span.get("fit.arm") + " " + span.get("fit.calls"))
            .collect(Collectors.joining());
    String kind = fired.isEmpty() ? "" : fired.get(0);
    return new Told(told.caller, told.kind, told.really, told.injected, kind, fired.size(), root);
  }

  private static String seen(Http.Caller caller, String where, Duration patience) {
    try {
      return caller.said(String.format(URL_OF, where), patience).replaceAll("127\\.0\\.0\\.1:\\d+", "HOST");
    } catch (Exception failed) {
      return Seen.failed(failed);
    }
  }

  @SuppressWarnings("unchecked") // put there by the tests' own extension
  private static Queue<Map<String, String>> spans() {
    Object found = System.getProperties().get("ldfi.test.spans");
    return (Queue<Map<String, String>>) found;
  }
}
