package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The mark of a fault that ends the process has left it, below the caller's call, and so has that of the control arm. */
class KilledIT {
  private static final String CALLER =
      new String(new BigInteger(Killed.CALLER, 16).toByteArray(), 1, 8, StandardCharsets.ISO_8859_1);

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void aMarkLeavesBeforeItsFaultEndsTheProcess(Cell cell) throws Exception {
    List<String> sent = new CopyOnWriteArrayList<>();
    HttpServer collector = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    collector.createContext(
        "/v1/traces",
        exchange -> {
          sent.add(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.ISO_8859_1));
          exchange.sendResponseHeaders(200, -1);
          exchange.close();
        });
    collector.start();
    Map<String, String> environment = new HashMap<>();
    environment.put("FIT_KEYS", UnderAgent.KEYS);
    environment.put("JAVA_TOOL_OPTIONS", "-Dldfi.test.mark=60000");
    environment.put("OTEL_TRACES_EXPORTER", "otlp");
    environment.put("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    environment.put("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:" + collector.getAddress().getPort());
    environment.put("OTEL_BSP_SCHEDULE_DELAY", "3600000");
    try {
      UnderAgent.run(cell, Killed.class, "", environment);
    } finally {
      collector.stop(0);
    }
    List<String> marks = sent.stream().filter(each -> each.contains("fit.mark")).toList();
    assertEquals(2, marks.size(), () -> String.join("\n", sent));
    for (String each : marks) {
      assertTrue(each.contains(CALLER), each);
    }
    assertTrue(marks.get(0).contains("1 control e7c1 "), marks.get(0));
    assertFalse(marks.get(0).contains("fit.would_fire"), marks.get(0)); // it waits for the mark
    assertTrue(marks.get(1).contains("1 treatment e7c1 "), marks.get(1));
    assertFalse(String.join("", sent).contains("fit.fired"), "the proof has left as well");
  }
}
