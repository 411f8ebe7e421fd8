package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Runs under the agent: each program has a Redis set a key while something really happens to it, and then while it is
 * well and the same is injected. A line of JSON for each says what was seen and what was recorded.
 */
public final class Caches {
  private static final int PATIENCE = 500; // milliseconds
  private static final int LONG = 60_000;
  private static final int PAUSE = 9_000;

  private final Map<String, Redis.Program> programs = Redis.programs();
  private final Path folder;

  private Caches(Path folder) {
    this.folder = folder;
  }

  public static void main(String[] arguments) throws Exception {
    Caches caches = new Caches(Files.createTempDirectory("ldfi-redis-"));
    Keys keys = Keys.parse(arguments[0]);
    try (RedisServer well = RedisServer.start(caches.folder)) {
      caches.programs.values().forEach(each -> each.said(well.port, LONG)); // loads classes
      for (String kind : arguments[1].split(" ")) {
        String host = Dependency.named("127.0.0.1", kind);
        String point = "callers>db:SET:" + host + ":" + well.port;
        Map<String, String> really = caches.really(kind);
        for (Map.Entry<String, Redis.Program> each : caches.programs.entrySet()) {
          String seen = really.get(each.getKey());
          int patience = patience(kind);
          Told told = Told.of(keys, each.getKey(), kind, point, seen, () -> each.getValue().said(host, well.port, patience));
          System.out.println(new Gson().toJson(told));
        }
      }
    }
    System.exit(0);
  }

  private static int patience(String kind) {
    return Told.LASTING.contains(kind) ? PATIENCE : LONG;
  }

  /** What each program sees when it really happens. */
  private Map<String, String> really(String kind) throws Exception {
    Map<String, String> seen = new LinkedHashMap<>();
    if (kind.equals("redis:loading")) {
      try (RedisServer loads = RedisServer.loading(folder)) {
        programs.forEach((name, program) -> seen.put(name, program.said(loads.port, LONG)));
      }
      Files.delete(folder.resolve("dump.rdb"));
      return seen;
    }
    for (Map.Entry<String, Redis.Program> each : programs.entrySet()) {
      seen.put(each.getKey(), really(kind, each.getValue()));
    }
    return seen;
  }

  private String really(String kind, Redis.Program program) throws Exception {
    int nowhere = RedisServer.free();
    if (kind.equals("refused")) {
      return program.said(nowhere, LONG);
    }
    if (kind.equals(Dependency.UNRESOLVED)) {
      return program.said(Dependency.NOBODY, nowhere, LONG);
    }
    String[] replica = {"--replicaof", "127.0.0.1 " + nowhere};
    try (RedisServer server = RedisServer.start(folder, kind.equals("redis:readonly") ? replica : new String[0])) {
      if (kind.equals("redis:readonly")) {
        return program.said(server.port, LONG);
      }
      server.said("CLIENT PAUSE " + PAUSE + " WRITE");
      Relay relay = Relay.to(server.port);
      Thread strikes = new Thread(() -> strike(kind, server, relay));
      strikes.start();
      String said = program.said(relay.port(), patience(kind));
      strikes.join();
      return said;
    }
  }

  private static void strike(String kind, RedisServer server, Relay relay) {
    try {
      if (Told.LASTING.contains(kind)) {
        return;
      }
      server.hasRead("set");
      if (kind.equals("reset")) {
        relay.reset();
      } else if (kind.equals("redis:lost")) {
        server.said("CLIENT KILL TYPE normal");
      } else {
        server.close();
      }
    } catch (IOException | InterruptedException failed) {
      failed.printStackTrace();
    }
  }
}
