package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import dev.ldfi.fit.Vectors;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What callers see of each kind of fault is what they see when it really happens, to types and words. */
class CallersIT {
  static final int PROGRAMS = 29;
  static final int RETRIED = 2;
  private static final List<String> ALL =
      Stream.of(
              Vectors.connecting("http"),
              List.of("reset", "timeout", "delay", "error", "status:404", "status:503"),
              Vectors.words("http", kind -> kind.has("answer")))
          .flatMap(List::stream)
          .toList();
  private static final String REPORTED =
      "1 java/0.2.0 callers>http:*|"
          + String.join(",", Vectors.words("http", kind -> !kind.has("body") || kind.has("answer"))) // all but slow
          + " callers>library:apache-httpclient-4 callers>library:apache-httpclient-5 callers>library:fit"
          + " callers>library:http-url-connection callers>library:java-http-client callers>library:okhttp-3"
          + " callers>library:reactor-netty-1]\n";
  private static final String NOTHING = "null null null"; // which the first span of a request says of no fault
  private static final String SOME = "refused status:503";

  private static List<Told> told(List<String> lines) {
    return lines.stream().map(line -> new Gson().fromJson(line, Told.class)).toList();
  }

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#all")
  void whatIsInjectedIsWhatReallyHappens(Cell cell) throws Exception {
    String sampler = cell.agent().equals(Cell.OLDEST) ? "parentbased_always_on" : "always_off";
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS, "OTEL_TRACES_SAMPLER", sampler);
    UnderAgent.Written written = UnderAgent.run(cell, Callers.class, String.join(" ", cell.of(ALL)), environment);
    assertTrue(written.log().contains("ldfi-fit is on: Keys[k1], agent " + cell.agent() + "\n"), written.log());
    assertTrue(written.log().contains(REPORTED), written.log());
    assertEquals(PROGRAMS * (cell.of(ALL).size() + 1) + RETRIED, written.lines().size());
    for (Told each : told(written.lines())) {
      String which = each.caller() + ", " + each.kind();
      assertEquals(lessChance(each, each.really()), lessChance(each, each.injected()), which);
      int calls = each.caller().endsWith("tries again") ? 2 : 1;
      boolean through = each.caller().endsWith(Dependency.BY_ADDRESS);
      assertEquals(through ? "null" : each.kind().replace("-n1", ""), each.fired(), which);
      assertEquals(calls, each.calls(), which);
      assertEquals("e7c1 treatment " + calls, each.root(), which);
    }
  }

  /**
   * Leaves out what is chance. OkHttp has two timers for one timeout, with words of their own. A connection that is
   * reset while HttpURLConnection still sends a body is found out in writing or in reading, in words of either.
   */
  private static String lessChance(Told each, String seen) {
    if (each.caller().startsWith("OkHttp") && Told.LASTING.contains(each.kind())) {
      return seen.replaceFirst("(?<=^java.net.SocketTimeoutException: ).*", "…");
    }
    if (each.caller().equals("HttpURLConnection, with a body") && each.kind().equals("reset")) {
      return seen.replaceFirst("Unexpected end of file from server|Connection reset", "…");
    }
    return seen;
  }

  @Test
  void withoutKeysNothingHappens() throws Exception {
    assertNothingHappens(UnderAgent.run(Cell.of(Cell.NEWEST), Callers.class, SOME, Map.of()));
  }

  @Test
  void withKeysThatCannotBeReadNothingHappens() throws Exception {
    UnderAgent.Written written = UnderAgent.run(Cell.of(Cell.NEWEST), Callers.class, SOME, Map.of("FIT_KEYS", "k1:short"));
    assertNothingHappens(written);
    assertTrue(written.log().contains("FIT_KEYS cannot be read"), written.log());
  }

  @Test
  void underAnAgentThatIsTooOldNothingHappens() throws Exception {
    UnderAgent.Written written = UnderAgent.run(Cell.of(Cell.TOO_OLD), Callers.class, SOME, Map.of("FIT_KEYS", UnderAgent.KEYS));
    assertNothingHappens(written);
    assertTrue(written.log().contains("ldfi-fit is off: agent " + Cell.TOO_OLD + " is too old"), written.log());
  }

  private static void assertNothingHappens(UnderAgent.Written written) {
    assertTrue(written.log().contains("reported: []\n"), written.log());
    assertEquals(PROGRAMS * SOME.split(" ").length + RETRIED, written.lines().size());
    for (Told each : told(written.lines())) {
      String which = each.caller() + ", " + each.kind();
      assertTrue(isWell(each), which + each.injected());
      assertEquals("null", each.fired(), which);
      assertEquals(NOTHING, each.root(), which);
    }
  }

  /** Whether it saw what a dependency says that is well. */
  static boolean isWell(Told each) {
    return each.injected().startsWith("200") || each.injected().startsWith("[102");
  }
}
