package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import dev.ldfi.fit.edge.Sent;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Runs under the agent as an edge: each server calls the next service in each way, and a line for each server says what
 * that service was sent. The second argument is the file that halts the edge.
 */
public final class Edges {
  /** How many requests of devices in an arm are sent to each server. */
  static final int CLAIMED = 200;

  /** The experiment that the control plane of EdgesIT arms. */
  static final String ARMED = "e1";

  private static final String UNSAMPLED = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\n";
  private static final String ELSEWHERE = "callers>http:GET:ratings/"; // a point that no call here has
  private static final String[] SPELLINGS = {"baggage", "Baggage", "BAGGAGE"};
  private static final Sent NOTHING = new Sent(List.of(), "not called", false);

  /**
   * What the next service was sent by one server.
   *
   * @param stamped how many claimed requests arrived with the experiment's context, sampled, with their other baggage
   * @param wrong what arrived that should not have, or did not and should have, in words
   */
  record Result(String server, int stamped, List<String> wrong) {}

  private final Keys keys;
  private final NextService next;
  private final Map<String, OnwardCalls.Way> ways;
  private final Queue<String> wrong = new ConcurrentLinkedQueue<>();
  private int port;

  private Edges(Keys keys) throws IOException {
    this.keys = keys;
    this.next = NextService.started(keys);
    this.ways = new OnwardCalls("127.0.0.1:" + next.port()).ways();
  }

  public static void main(String[] arguments) throws Exception {
    Edges edges = new Edges(Keys.parse(arguments[0]));
    Path halt = Path.of(arguments[1]);
    for (Map.Entry<String, EdgeServers.Starting> each : EdgeServers.all().entrySet()) {
      edges.port = each.getValue().start(edges::serve);
      System.out.println(new Gson().toJson(edges.tried(each.getKey(), halt)));
    }
    System.exit(0);
  }

  private Result tried(String server, Path halt) throws IOException, InterruptedException {
    wrong.clear();
    stripsHeaders();
    stripsTrailers();
    keepsScenarios();
    int stamped = stamps();
    Files.createFile(halt);
    stripsHalted();
    Files.delete(halt);
    return new Result(server, stamped, List.copyOf(wrong));
  }

  private void serve(String path, List<String> baggage) {
    try {
      ways.get(path.substring(1)).call(baggage);
    } catch (IOException | InterruptedException | ExecutionException | RuntimeException failed) {
      wrong.add(path + " failed: " + failed);
    }
  }

  /** Sends a request of a device; returns what the next service was sent of it. */
  private Sent ask(String way, String device, String... baggages) throws IOException {
    StringBuilder head = new StringBuilder("GET /" + way + " HTTP/1.1\r\n").append(UNSAMPLED);
    head.append("host: shop\r\nconnection: close\r\n");
    if (!device.isEmpty()) {
      head.append("x-device-id: ").append(device).append("\r\n");
    }
    for (int i = 0; i < baggages.length; i++) {
      head.append(SPELLINGS[i % SPELLINGS.length]).append(": ").append(baggages[i]).append("\r\n");
    }
    return send(head.append("\r\n").toString());
  }

  private Sent send(String request) throws IOException {
    next.take();
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      socket.setSoTimeout(60_000);
      OutputStream out = socket.getOutputStream();
      out.write(request.getBytes(StandardCharsets.ISO_8859_1));
      out.flush();
      socket.getInputStream().readAllBytes();
    }
    Sent sent = next.take();
    return sent == null ? NOTHING : sent;
  }

  /** Returns a valid context for scenarios on a device, which fails the edge's own calls if it is obeyed. */
  private String signedFor(String device) {
    String point = Points.http("callers", "GET", "127.0.0.1", next.port(), "/", "");
    return "fit=" + Told.context(keys, Sent.scenarioOf(device), "refused", point, "t");
  }

  /** Returns the ways to write a context of another device into headers. */
  private List<String[]> written(String device) {
    String others = signedFor(device);
    return List.of(
        new String[] {others},
        new String[] {"a=b", others + ",c=d"},
        new String[] {others, "a=b"},
        new String[] {others.replace("fit", "%66it") + ";p=q", "a=b"},
        new String[] {" " + others.replaceFirst("=", " = ")},
        new String[] {"a=b," + others + "," + others});
  }

  private void stripsHeaders() throws IOException {
    for (String way : ways.keySet()) {
      for (String device : List.of("mine", "")) {
        for (String[] each : written(device.isEmpty() ? "" : "hers")) {
          Sent sent = ask(way, device, each);
          boolean isForeign = sent.contexts().stream().anyMatch(context -> !context.equals(ARMED));
          if (isForeign || String.join(",", each).contains("a=b") != sent.others().contains("a=b")) {
            wrong.add(way + ", device '" + device + "', " + String.join(" and ", each) + ": " + sent);
          }
        }
      }
    }
  }

  /** A server may refuse a request with trailers; then nothing was called. */
  private void stripsTrailers() throws IOException {
    for (String way : ways.keySet()) {
      Sent sent =
          send(
              "POST /" + way + " HTTP/1.1\r\nhost: shop\r\nx-device-id: mine\r\nconnection: close\r\n"
                  + "transfer-encoding: chunked\r\ntrailer: baggage\r\n\r\n1\r\nx\r\n0\r\n"
                  + ("baggage: " + signedFor("hers") + "\r\n\r\n"));
      if (!sent.contexts().isEmpty()) {
        wrong.add(way + ", in a trailer: " + sent);
      }
    }
  }

  private void keepsScenarios() throws IOException {
    String scenario = Sent.scenarioOf("hers");
    for (String way : ways.keySet()) {
      String own = "fit=" + Told.context(keys, scenario, "refused", ELSEWHERE, "t");
      Sent sent = ask(way, "hers", signedFor("another"), "a=b," + own);
      if (!sent.sampled() || !sent.contexts().equals(List.of(scenario))) {
        wrong.add(way + ", a scenario on the device itself: " + sent);
      }
    }
  }

  private int stamps() throws IOException, InterruptedException {
    await("the rules to be held", () -> contexts().equals(List.of(ARMED)));
    int stamped = 0;
    List<String> names = List.copyOf(ways.keySet());
    for (int i = 0; i < CLAIMED; i++) {
      String way = names.get(i % names.size());
      Sent sent = ask(way, "d" + i, "a=b," + signedFor("hers"));
      if (sent.equals(new Sent(List.of(ARMED), "a=b", true))) {
        stamped++;
      } else if (!sent.contexts().isEmpty()) {
        wrong.add(way + ", claimed: " + sent);
      }
    }
    return stamped;
  }

  private void stripsHalted() throws IOException, InterruptedException {
    await("the halt to be seen", () -> contexts().isEmpty());
    for (String way : ways.keySet()) {
      for (String[] each : written("hers")) {
        Sent sent = ask(way, "mine", each);
        if (!sent.contexts().isEmpty() || sent.sampled()) {
          wrong.add("halted, " + way + ", " + String.join(" and ", each) + ": " + sent);
        }
      }
    }
  }

  private List<String> contexts() {
    try {
      return ask("client", "d0").contexts();
    } catch (IOException failed) {
      return List.of(failed.toString());
    }
  }

  private void await(String what, BooleanSupplier holds) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!holds.getAsBoolean()) {
      if (System.nanoTime() > end) {
        wrong.add("waited a minute for " + what);
        return;
      }
      Thread.sleep(20);
    }
  }
}
