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

/** What callers of a cache see of each kind of fault is what they see when it really happens to Redis. */
class CachesIT {
  private static final List<String> KINDS =
      Stream.concat(
              Stream.of("redis:loading", "redis:readonly", "redis:lost", "error", "reset", "timeout", "delay"),
              Vectors.connecting("command").stream())
          .toList();
  private static final int PROGRAMS = 3;

  @BeforeAll
  static void isInstalled() {
    boolean installed = RedisServer.installed().isPresent();
    assertTrue(installed || System.getenv("CI") == null, "Redis is not installed, and CI has to run this test");
    assumeTrue(installed, "Redis is not installed");
  }

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#all")
  void whatIsInjectedIsWhatReallyHappens(Cell cell) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    UnderAgent.Written written = UnderAgent.run(cell, Caches.class, String.join(" ", cell.of(KINDS)), environment);
    assertEquals(PROGRAMS * cell.of(KINDS).size(), written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      String which = each.caller() + ", " + each.kind();
      assertEquals(comparable(each, each.really()), comparable(each, each.injected()), which);
      assertEquals(each.kind(), each.fired(), which);
    }
  }

  /** Jedis connects before it is asked for anything, which is no call: what fails is the command that follows. */
  private static String comparable(Told each, String seen) {
    boolean connects = Vectors.connecting("command").contains(each.kind());
    return connects ? seen.replaceFirst("^no connection: ", "").replaceFirst(" < ;.*", " < ") : seen;
  }
}
