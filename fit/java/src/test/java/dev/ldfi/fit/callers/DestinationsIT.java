package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A failure context goes to hosts that may have it, by whichever client, and the rest of the baggage to all. */
class DestinationsIT {
  private static final int PROGRAMS = CallersIT.PROGRAMS + 6 + 4; // and those that copy, and call by gRPC

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void noStrangerIsSentAContext(Cell cell) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS, "FIT_HOSTS", "!" + Destinations.STRANGER);
    UnderAgent.Written written = UnderAgent.run(cell, Destinations.class, "", environment);
    List<String> wrong = written.lines().stream().filter(line -> !line.endsWith(": has it lacks it lacks it")).toList();
    assertEquals(List.of(), wrong);
    assertEquals(PROGRAMS, written.lines().size(), written.log());
  }
}
