package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.Gson;
import dev.ldfi.fit.Vectors;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What callers of Lettuce see of each kind of fault is what they see when it really happens to Redis. */
class LettuceIT {
  private static final List<String> KINDS =
      Stream.concat(
              Stream.of("redis:loading", "redis:readonly", "redis:lost", "error", "reset", "timeout", "delay"),
              Vectors.connecting("command").stream())
          .toList();
  private static final String KEPT = "redis:lost"; // by a client that connects again, which then sends it again

  @BeforeAll
  static void isInstalled() {
    boolean installed = RedisServer.installed().isPresent();
    assertTrue(installed || System.getenv("CI") == null, "Redis is not installed, and CI has to run this test");
    assumeTrue(installed, "Redis is not installed");
  }

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void whatIsInjectedIsWhatReallyHappens(Cell cell) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    UnderAgent.Written written = UnderAgent.run(cell, Lettuces.class, String.join(" ", KINDS), environment);
    int others = Lettuce.several().size() + Lettuce.letThrough().size() + 1;
    assertEquals(Lettuce.programs().size() * KINDS.size() + others, written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      String which = each.caller() + ", " + each.kind();
      boolean isLetThrough =
          each.caller().equals("let through") || each.kind().equals(KEPT) && !each.caller().endsWith(Lettuce.ONCE);
      assertEquals(each.really(), each.injected(), which);
      assertEquals(isLetThrough ? "null" : each.kind().replaceAll("delay-.*", "delay"), each.fired(), which);
    }
  }
}
