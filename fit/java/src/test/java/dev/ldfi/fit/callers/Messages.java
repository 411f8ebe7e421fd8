package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs under the agent: each program sends Kafka a message while something really happens to its broker, and then while
 * that is well and the same is injected. A line of JSON for each says what was seen and what was recorded. It is told
 * the broker's port, the number of its process, and the kinds.
 */
public final class Messages {
  static final String LATER = "delay-2000"; // milliseconds, for which a patient caller waits

  private static final String POINT = "callers>message:publish:kafka/" + Producers.TOPIC;
  private static final int PATIENCE = 500; // milliseconds
  private static final int LONG = 60_000;

  private final Keys keys;
  private final int port;
  private final String process;

  private Messages(Keys keys, int port, String process) {
    this.keys = keys;
    this.port = port;
    this.process = process;
  }

  public static void main(String[] arguments) throws Exception {
    List<String> words = Arrays.asList(arguments[1].split(" "));
    Messages messages = new Messages(Keys.parse(arguments[0]), Integer.parseInt(words.get(0)), words.get(1));
    Producers.programs().values().forEach(each -> each.said(messages.port, LONG)); // loads classes
    for (String kind : words.subList(2, words.size())) {
      for (Map.Entry<String, Producers.Program> each : Producers.programs().entrySet()) {
        messages.compare(each.getKey(), kind, each.getValue(), messages.really(kind, each.getValue()), patience(kind));
      }
    }
    for (Map.Entry<String, Producers.Program> each : new LinkedHashMap<>(Producers.letThrough()).entrySet()) {
      String well = each.getValue().said(messages.port, LONG);
      messages.compare(each.getKey(), "delay", each.getValue(), well, LONG);
    }
    System.err.println("reported: " + Told.reported());
    System.exit(0);
  }

  private static int patience(String kind) {
    return kind.equals(LATER) ? LONG : PATIENCE;
  }

  private void compare(String caller, String kind, Producers.Program program, String really, int patience)
      throws InterruptedException {
    Told told = Told.of(keys, caller, kind, POINT, really, () -> program.said(port, patience));
    System.out.println(new Gson().toJson(told));
  }

  /** What a program sees when it really happens. */
  private String really(String kind, Producers.Program program) throws IOException, InterruptedException {
    if (kind.equals(LATER)) {
      return whenItPauses(program);
    }
    if (!Told.LASTING.contains(kind)) {
      return program.said(RedisServer.free(), PATIENCE);
    }
    try (ServerSocket silent = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
      return program.said(silent.getLocalPort(), PATIENCE);
    }
  }

  private String whenItPauses(Producers.Program program) throws IOException, InterruptedException {
    signal("STOP");
    Thread goesOn =
        new Thread(
            () -> {
              try {
                Thread.sleep(Long.parseLong(LATER.substring("delay-".length())) + PATIENCE);
                signal("CONT");
              } catch (IOException | InterruptedException failed) {
                failed.printStackTrace();
              }
            });
    goesOn.start();
    String said = program.said(port, LONG);
    goesOn.join();
    return said;
  }

  private void signal(String name) throws IOException, InterruptedException {
    new ProcessBuilder("kill", "-" + name, process).inheritIO().start().waitFor();
  }
}
