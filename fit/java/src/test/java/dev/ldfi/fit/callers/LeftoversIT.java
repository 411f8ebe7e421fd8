package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What a request leaves to be done works for others when it is over: its calls are let through, and say so. */
class LeftoversIT {
  private static final int WAYS = 5;

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void aCallThatOutlivesItsRequestIsLetThrough(Cell cell) throws Exception {
    UnderAgent.Written written = UnderAgent.run(cell, Leftovers.class, "", Map.of("FIT_KEYS", UnderAgent.KEYS));
    List<String> wrong = written.lines().stream().filter(line -> !line.endsWith(": 404 200 outlived")).toList();
    assertEquals(List.of(), wrong);
    assertEquals(2 * WAYS, written.lines().size(), written.log());
  }
}
