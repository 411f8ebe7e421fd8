package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Scope;
import java.util.List;
import java.util.concurrent.Callable;

/** Runs under the agent: methods of an application are called while this and that is injected. */
public final class Methods {
  /** One call: which method, what was injected, what its caller saw, and what the spans of its point say. */
  record Called(String method, String kind, String seen, boolean late, List<String> fired) {}

  private final Keys keys;
  private final Prices prices = new Prices();

  private Methods(Keys keys) {
    this.keys = keys;
  }

  public static void main(String[] arguments) throws Exception {
    Methods methods = new Methods(Keys.parse(arguments[0]));
    methods.all("read");
    methods.all("total");
    methods.all("later");
    methods.all("unnamed");
    System.err.println("reported: " + Told.reported());
    System.exit(0);
  }

  private void all(String method) throws Exception {
    for (String kind : List.of("error", "delay", "exception:IOException", "exception:Gone", "exception:IllegalStateException")) {
      tell(method, kind);
    }
  }

  @SuppressWarnings("try") // a scope is held, and not asked
  private void tell(String method, String kind) throws Exception {
    String point = Points.method("callers", method, Prices.class.getName());
    String carried = Told.context(keys, kind.equals("delay") ? "delay-700" : kind, point);
    Span root;
    String seen;
    long began = System.nanoTime();
    try (Scope context = Baggage.builder().put("fit", carried).build().makeCurrent()) {
      root = GlobalOpenTelemetry.getTracer("callers").spanBuilder("request").startSpan();
      try (Scope request = root.makeCurrent()) {
        seen = seen(called(method));
      }
    }
    boolean late = System.nanoTime() - began >= 700_000_000L;
    root.end();
    List<String> fired =
        Told.spans().stream()
            .filter(span -> span.get(".trace").equals(root.getSpanContext().getTraceId()))
            .filter(span -> point.equals(span.get("fit.point")))
            .map(span -> span.get("fit.fired") + " " + span.get(".status"))
            .toList();
    System.out.println(new Gson().toJson(new Called(method, kind, seen, late, fired)));
  }

  private Callable<Object> called(String method) {
    return switch (method) {
      case "read" -> () -> prices.read("tea") + ", " + prices.read(7);
      case "total" -> () -> prices.total(2);
      case "later" -> () -> prices.later().get();
      default -> prices::unnamed;
    };
  }

  private static String seen(Callable<Object> call) {
    try {
      return String.valueOf(call.call());
    } catch (Exception failed) {
      return Seen.failed(failed);
    }
  }
}
