package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Of fifty requests at once, a request without a context is never hit, and one with a context always, by its own. */
class LeaksIT {
  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void noContextReachesAnotherRequest(Cell cell) throws Exception {
    List<String> ways = new ArrayList<>(List.of("thread pools", "futures", "reactive pipelines"));
    if (cell.hasVirtualThreads()) {
      ways.add("virtual threads");
    }
    UnderAgent.Written written = UnderAgent.run(cell, Leaks.class, "", Map.of("FIT_KEYS", UnderAgent.KEYS));
    assertEquals(ways.stream().map(way -> way + ": []").toList(), written.lines());
  }
}
