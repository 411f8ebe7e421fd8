package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The edge in each server that the agent instruments, by what the next service is sent. */
class EdgesIT {
  private static final double STAMPED = 0.995; // share of the claimed requests, at least
  private static final String RULES =
      "{\"version\":\"v\",\"lease_seconds\":60,\"rules\":[{\"experiment\":\"" + Edges.ARMED + "\",\"salt\":\"s\","
          + "\"predicate\":[{\"feature\":\"method\",\"value\":\"GET\",\"negated\":false}],\"treatment\":1,\"control\":0,"
          + "\"faults\":[\"refused@callers>http:GET:ratings/\"],\"delay_ms\":1}]}";

  private HttpServer plane;

  @BeforeEach
  void startControlPlane() throws IOException {
    plane = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    plane.setExecutor(Executors.newCachedThreadPool());
    plane.createContext("/", EdgesIT::answer);
    plane.start();
  }

  private static void answer(HttpExchange exchange) throws IOException {
    if (String.valueOf(exchange.getRequestURI().getQuery()).contains("version=v")) {
      pause(); // nothing is new
    }
    byte[] rules = RULES.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(200, rules.length);
    exchange.getResponseBody().write(rules);
    exchange.close();
  }

  private static void pause() {
    try {
      TimeUnit.SECONDS.sleep(1);
    } catch (InterruptedException over) {
      Thread.currentThread().interrupt();
    }
  }

  @AfterEach
  void stopControlPlane() {
    plane.stop(0);
  }

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void theNextServiceIsSentWhatTheEdgeHasSignedAndNothingElse(Cell cell, @TempDir Path folder) throws Exception {
    String halt = folder.resolve("halt").toString();
    Map<String, String> environment = new HashMap<>();
    environment.put("FIT_KEYS", UnderAgent.KEYS);
    environment.put("LDFI_EDGE", "true");
    environment.put("LDFI_URL", "http://127.0.0.1:" + plane.getAddress().getPort());
    environment.put("LDFI_TOKEN", "t");
    environment.put("FIT_HALT_FILE", halt);
    environment.put("OTEL_TRACES_SAMPLER", "parentbased_always_off");
    UnderAgent.Written written = UnderAgent.run(cell, Edges.class, halt, environment);
    List<String> servers = new ArrayList<>();
    for (String line : written.lines()) {
      Edges.Result each = new Gson().fromJson(line, Edges.Result.class);
      servers.add(each.server());
      assertEquals(List.of(), each.wrong(), each.server());
      assertTrue(each.stamped() >= STAMPED * Edges.CLAIMED, line);
    }
    assertEquals(List.copyOf(EdgeServers.all().keySet()), servers, written.log());
  }
}
