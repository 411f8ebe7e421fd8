package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Runs under the agent: each program has a Redis set a key by Lettuce while something really happens to it, and then
 * while it is well and the same is injected. A line of JSON for each says what was seen and what was recorded.
 */
public final class Lettuces {
  static final String LATER = "delay-1500"; // milliseconds, for which a patient caller waits

  private static final List<String> PATIENT = List.of("redis:lost", "redis:loading", "redis:readonly", "reset", LATER);
  private static final int PATIENCE = 300; // milliseconds
  private static final int LONG = 60_000;
  private static final int PAUSE = 9_000;
  private static final Lettuce.Meanwhile NOTHING = lost -> {};

  private final Keys keys;
  private final Path folder;
  private final RedisServer well;

  private Lettuces(Keys keys, Path folder) throws IOException, InterruptedException {
    this.keys = keys;
    this.folder = folder;
    this.well = RedisServer.start(folder);
  }

  public static void main(String[] arguments) throws Exception {
    Lettuces all = new Lettuces(Keys.parse(arguments[0]), Files.createTempDirectory("ldfi-redis-"));
    Lettuce.programs().values().forEach(each -> each.said(all.well.port, LONG, NOTHING)); // loads classes
    for (String kind : arguments[1].split(" ")) {
      Map<String, String> really = all.really(kind, Lettuce.programs());
      Lettuce.programs().forEach((name, program) -> all.compare(name, kind, program, really.get(name)));
    }
    Map<String, String> ordered = all.really(LATER, Lettuce.several());
    Lettuce.several().forEach((name, program) -> all.compare(name, LATER, program, ordered.get(name)));
    for (Map.Entry<String, Lettuce.Program> each : Lettuce.letThrough().entrySet()) {
      String well = each.getValue().said(all.well.port, LONG, NOTHING);
      all.compare("let through", each.getKey(), each.getValue(), well);
    }
    all.compare("beside", LATER, Lettuce.BESIDE, "late, beside c, OK");
    System.exit(0);
  }

  /** How long a program waits: one that does not connect again is told at once that its server is gone. */
  private static int patience(String kind, String name) {
    boolean isTold = kind.equals("error") && name.endsWith(Lettuce.ONCE);
    return isTold || PATIENT.contains(kind) ? LONG : PATIENCE;
  }

  private void compare(String name, String kind, Lettuce.Program program, String really) {
    String host = Dependency.named("127.0.0.1", kind);
    String point = "callers>db:SET:" + host + ":" + well.port;
    try {
      int patience = patience(kind, name);
      Told told = Told.of(keys, name, kind, point, really, () -> program.said(host, well.port, patience, NOTHING));
      System.out.println(new Gson().toJson(told));
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  /** What each program sees when it really happens. */
  private Map<String, String> really(String kind, Map<String, Lettuce.Program> programs) throws Exception {
    Map<String, String> seen = new LinkedHashMap<>();
    if (kind.equals("redis:loading")) {
      try (RedisServer loads = RedisServer.loading(folder)) {
        programs.forEach((name, program) -> seen.put(name, program.said(loads.port, LONG, NOTHING)));
      }
      Files.delete(folder.resolve("dump.rdb"));
      return seen;
    }
    for (Map.Entry<String, Lettuce.Program> each : programs.entrySet()) {
      seen.put(each.getKey(), really(kind, each.getValue(), patience(kind, each.getKey())));
    }
    return seen;
  }

  private String really(String kind, Lettuce.Program program, int patience) throws Exception {
    String[] replica = {"--replicaof", "127.0.0.1 " + RedisServer.free()};
    boolean reads = kind.equals("redis:readonly");
    try (RedisServer server = RedisServer.start(folder, reads ? replica : new String[0])) {
      if (reads) {
        return program.said(server.port, LONG, NOTHING);
      }
      if (kind.equals("refused")) {
        return program.said(server.port, patience, lost -> isGone(server, lost));
      }
      if (kind.equals(Dependency.UNRESOLVED)) {
        return program.said(
            "localhost",
            server.port,
            patience,
            lost -> {
              Lettuce.forget(server.port);
              isGone(server, lost);
            });
      }
      Relay relay = Relay.to(server.port);
      Thread[] strikes = new Thread[1];
      String said =
          program.said(
              relay.port(),
              patience,
              lost -> {
                pause(server, kind.equals(LATER) ? LATER.substring("delay-".length()) : String.valueOf(PAUSE));
                strikes[0] = new Thread(() -> strike(kind, server, relay));
                strikes[0].start();
              });
      strikes[0].join();
      return said;
    }
  }

  private static void pause(RedisServer server, String milliseconds) {
    try {
      server.said("CLIENT PAUSE " + milliseconds + " WRITE");
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }

  private static void isGone(RedisServer server, CountDownLatch lost) {
    server.close();
    try {
      if (!lost.await(LONG, TimeUnit.MILLISECONDS)) {
        throw new IllegalStateException("the connection stays");
      }
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  private static void strike(String kind, RedisServer server, Relay relay) {
    try {
      if (Told.LASTING.contains(kind) || kind.equals(LATER)) {
        return;
      }
      server.hasRead("set");
      if (kind.equals("reset")) {
        relay.reset();
      } else if (kind.equals("redis:lost")) {
        server.said("CLIENT KILL TYPE normal");
        server.said("CLIENT UNPAUSE");
      } else {
        server.close();
      }
    } catch (IOException | InterruptedException failed) {
      failed.printStackTrace();
    }
  }
}
