package dev.ldfi.fit.conformance;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Kind;
import dev.ldfi.fit.Points;
import dev.ldfi.fit.Refused;
import io.opentelemetry.api.trace.Span;
import java.io.IOException;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Executors;
import java.util.function.Function;

/**
 * Lets {@code python -m ldfi.testing.conformance} ask the extension, over the control protocol of
 * docs/conformance.md. It runs under the agent, and says its port.
 */
public final class Host {
  private static final Gson GSON = new Gson();

  private final Client client;
  private final String edges; // the server of each, or empty for none
  private int port;

  private Host(Client client, String edges) {
    this.client = client;
    this.edges = edges;
  }

  public static void main(String[] arguments) throws IOException {
    Host host = new Host(Client.named(arguments[0]), arguments.length > 1 ? arguments[1] : "");
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    host.port = server.getAddress().getPort();
    server.createContext("/about", exchange -> answer(exchange, asked -> host.about()));
    server.createContext("/decode", exchange -> answer(exchange, asked -> each(asked, Host::decoded)));
    server.createContext("/name", exchange -> answer(exchange, asked -> each(asked, Host::named)));
    server.createContext("/run", exchange -> answer(exchange, host::run));
    server.createContext("/edge", exchange -> answer(exchange, asked -> Front.started(host.edges, asked)));
    server.createContext("/calls", exchange -> answer(exchange, asked -> calls()));
    server.createContext("/serve", exchange -> answer(exchange, host::serve));
    server.start();
    System.out.println(host.port);
  }

  private static void answer(HttpExchange exchange, Function<JsonObject, JsonElement> with) throws IOException {
    byte[] asked = exchange.getRequestBody().readAllBytes();
    String text = asked.length == 0 ? "{}" : new String(asked, StandardCharsets.UTF_8);
    byte[] told = with.apply(JsonParser.parseString(text).getAsJsonObject()).toString().getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(200, told.length);
    exchange.getResponseBody().write(told);
    exchange.close();
  }

  private JsonElement about() {
    return GSON.toJsonTree(
        Map.of(
            "protocol", 1,
            "implementation", "Java",
            "service", "conformance",
            "reads", "sdk",
            "edge", !edges.isEmpty(),
            "kinds",
                Kind.words("http").stream().filter(word -> !word.equals("slow")).toList(),
            "names", List.of("http", "rpc", "db", "connect", "command", "message")));
  }

  private static JsonElement each(JsonObject asked, Function<JsonObject, JsonElement> one) {
    JsonArray told = new JsonArray();
    asked.getAsJsonArray("cases").forEach(each -> told.add(one.apply(each.getAsJsonObject())));
    return told;
  }

  private static JsonElement decoded(JsonObject asked) {
    BigDecimal now = asked.get("now").getAsBigDecimal();
    BigDecimal part = now.subtract(BigDecimal.valueOf(now.longValue()));
    Instant at = Instant.ofEpochSecond(now.longValue(), part.movePointRight(9).longValue());
    try {
      FailureContext read = FailureContext.read(Keys.parse(text(asked, "keys")), text(asked, "value"), at);
      List<Map<String, Object>> faults = new ArrayList<>();
      read.injections.forEach(
          (hash, found) ->
              faults.add(
                  Map.of("hash", hash, "kind", found.kind, "delay_ms", found.longest, "first", found.first)));
      Map<String, Object> context =
          Map.of(
              "experiment", read.experiment,
              "arm", read.arm(),
              "expires", read.expires.getEpochSecond(),
              "faults", faults);
      return GSON.toJsonTree(Map.of("result", "accepted", "context", context));
    } catch (Refused refused) {
      return GSON.toJsonTree(Map.of("result", refused.reason.name().toLowerCase(Locale.ROOT)));
    } catch (IllegalArgumentException unreadable) {
      return GSON.toJsonTree(Map.of("result", "unreadable keys"));
    }
  }

  private static JsonElement named(JsonObject of) {
    String name = nameOf(text(of, "kind"), of);
    return GSON.toJsonTree(Map.of("name", name, "hash", Points.hash(name)));
  }

  /** The name of a point of which that is known which stands in a vector. */
  public static String nameOf(String kind, JsonObject known) {
    String caller = text(known, "caller");
    return switch (kind) {
      case "http" ->
          Points.http(
              caller,
              text(known, "method"),
              text(known, "host"),
              number(known, "port"),
              text(known, "path"),
              text(known, "template"));
      case "rpc" -> Points.rpc(caller, text(known, "method"), text(known, "peer"));
      case "db" -> Points.database(caller, text(known, "statement"), text(known, "peer"));
      case "connect" -> Points.connection(caller, text(known, "peer"));
      case "command" -> Points.command(caller, text(known, "command"), text(known, "host"), number(known, "port"));
      case "message" ->
          Points.message(
              caller, text(known, "operation"), text(known, "system"), text(known, "destination"));
      default -> throw new IllegalArgumentException(kind);
    };
  }

  private static String text(JsonObject of, String name) {
    JsonElement found = of.get(name);
    return found == null || found.isJsonNull() ? "" : found.getAsString();
  }

  private static int number(JsonObject of, String name) {
    JsonElement found = of.get(name);
    return found == null || found.isJsonNull() ? 0 : found.getAsInt();
  }

  /** Has a request with these headers served, by this very process and with no client that is instrumented. */
  private JsonElement run(JsonObject asked) {
    StringBuilder head = new StringBuilder("POST /serve HTTP/1.0\r\n");
    asked.getAsJsonObject("headers").entrySet().forEach(
        header -> head.append(header.getKey()).append(": ").append(header.getValue().getAsString()).append("\r\n"));
    byte[] body = asked.toString().getBytes(StandardCharsets.UTF_8);
    head.append("Content-Length: ").append(body.length).append("\r\n\r\n");
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      OutputStream out = socket.getOutputStream();
      out.write(head.toString().getBytes(StandardCharsets.ISO_8859_1));
      out.write(body);
      out.flush();
      String told = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      JsonObject served = JsonParser.parseString(told.substring(told.indexOf("\r\n\r\n"))).getAsJsonObject();
      served.add("spans", marks(served.remove("trace").getAsString()));
      return served;
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }

  private JsonElement serve(JsonObject asked) {
    JsonArray seen = new JsonArray();
    for (int i = 0; i < asked.get("calls").getAsInt(); i++) {
      seen.add(call(text(asked, "url"), Duration.ofMillis(asked.get("timeout_ms").getAsLong())));
    }
    JsonObject told = new JsonObject();
    told.add("seen", seen);
    told.addProperty("trace", Span.current().getSpanContext().getTraceId());
    return told;
  }

  private JsonElement call(String url, Duration patience) {
    try {
      return GSON.toJsonTree(client.get(url, patience));
    } catch (Exception failed) {
      return GSON.toJsonTree(Map.of("failed", Client.failure(failed)));
    }
  }

  /** What is written of faults on the spans of a trace. */
  private static JsonElement marks(String trace) {
    JsonArray found = new JsonArray();
    spans().stream()
        .filter(span -> span.get(".trace").equals(trace) && span.containsKey("fit.point"))
        .sorted(Comparator.comparing(span -> span.get(".began")))
        .forEach(
            span -> {
              JsonObject marks = new JsonObject();
              span.forEach((name, value) -> {
                if (name.startsWith("fit.")) {
                  marks.addProperty(name, value);
                } else if (name.equals(".event")) {
                  marks.addProperty("event", value);
                }
              });
              found.add(marks);
            });
    return found;
  }

  /** Beyond the protocol: all spans of calls that have ended, as they were exported. */
  private static JsonElement calls() {
    return GSON.toJsonTree(spans().stream().filter(span -> span.get(".kind").equals("CLIENT")).toList());
  }

  /** All spans that have ended. */
  static JsonElement ended() {
    return GSON.toJsonTree(spans());
  }

  @SuppressWarnings("unchecked") // put there by the tests' own extension
  private static Queue<Map<String, String>> spans() {
    return (Queue<Map<String, String>>) System.getProperties().get("ldfi.test.spans");
  }
}
