package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Runs under the agent: each program calls a dependency to which something really happens, and then one that is
 * well while the same is injected. A line of JSON for each says what was seen and what was recorded.
 */
public final class Callers {
  private static final String URL_OF = "http://%s/x";
  private static final Duration PATIENCE = Duration.ofSeconds(1);
  private static final Duration LONG = Duration.ofSeconds(60); // for what ends by itself, on a busy machine, too

  /** Kinds of which an attempt is followed by another: for the first only, and for all. */
  private static final List<String> RETRIED = List.of("reset-n1", "reset");

  /** Those that are reported, as each is loaded. */
  private static final String[] LIBRARIES = {
    "apache-httpclient-4", "apache-httpclient-5", "http-url-connection", "java-http-client", "okhttp-3", "reactor-netty-1"
  };

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
    ExecutorService pool = Executors.newCachedThreadPool();
    List<Future<List<Told>>> running = new ArrayList<>();
    Http.callers().forEach((name, caller) -> running.add(pool.submit(() -> callers.all(name, caller))));
    for (Future<List<Told>> each : running) {
      each.get().forEach(told -> System.out.println(new Gson().toJson(told)));
    }
    for (String kind : RETRIED) {
      System.out.println(new Gson().toJson(callers.again(kind)));
    }
    System.err.println("reported: " + Told.reported(LIBRARIES));
    System.exit(0);
  }

  private List<Told> all(String name, Http.Caller caller) throws Exception {
    seen(caller, well, LONG); // loads classes, for longer than the callers may be patient
    List<Told> all = new ArrayList<>();
    for (String kind : kinds) {
      Duration patience = Told.LASTING.contains(kind) ? PATIENCE : LONG;
      String really = seen(caller, Dependency.at(kind), patience);
      String at = Dependency.named(well, kind);
      all.add(Told.of(keys, name, kind, point(name, at), really, () -> seen(caller, at, patience)));
    }
    if (kinds.contains(Dependency.UNRESOLVED)) {
      String by = name + Dependency.BY_ADDRESS;
      String fine = seen(caller, well, LONG);
      all.add(Told.of(keys, by, Dependency.UNRESOLVED, point(name, well), fine, () -> seen(caller, well, LONG)));
    }
    return all;
  }

  /** OkHttp tries once more what failed on a connection that it had kept. */
  private Told again(String kind) throws Exception {
    Http.Caller caller = Http.callers().get("OkHttp.execute");
    String stale = Dependency.at(kind.equals("reset") ? "reset" : "stale");
    seen(caller, stale, LONG);
    String really = seen(caller, stale, LONG);
    String kept = Dependency.at("kept");
    seen(caller, kept, LONG);
    return Told.of(keys, "OkHttp, tries again", kind, point("", kept), really, () -> seen(caller, kept, LONG));
  }

  private static String point(String name, String at) {
    int port = Integer.parseInt(at.split(":")[1]);
    return Points.http("callers", name.endsWith("body") ? "POST" : "GET", at.split(":")[0], port, "/x", "");
  }

  private static String seen(Http.Caller caller, String where, Duration patience) {
    try {
      return caller.said(String.format(URL_OF, where), patience).replaceAll("127\\.0\\.0\\.1:\\d+", "HOST");
    } catch (Exception failed) {
      return Seen.failed(failed);
    }
  }
}
