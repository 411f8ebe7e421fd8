package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What a request leaves to be done works for others when it is over: its calls are let through, and say so. */
class LeftoversIT {
  private static final int WAYS = 10;

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void aCallThatOutlivesItsRequestIsLetThrough(Cell cell) throws Exception {
    UnderAgent.Written written = UnderAgent.run(cell, Leftovers.class, "", Map.of("FIT_KEYS", UnderAgent.KEYS));
    List<String> others = written.lines().stream().filter(line -> !line.endsWith(": 404 200 outlived")).toList();
    assertEquals(List.of("a single flight: [404, 404, 404, 404, 404] 1"), others);
    assertEquals(2 * WAYS + 1, written.lines().size(), written.log());
  }
}
