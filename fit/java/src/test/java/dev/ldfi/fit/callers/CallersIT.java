package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What callers see of each kind of fault is what they see when it really happens, to types and words. */
class CallersIT {
  private static final String OLDEST = "2.31.1";
  private static final String NEWEST = "2.33.1";
  private static final String TOO_OLD = "2.28.1";

  private static final int PROGRAMS = 29;
  private static final int RETRIED = 2;
  private static final String ALL =
      "refused reset timeout delay error status:404 status:503 empty truncated corrupt";
  private static final String REPORTED =
      "reported: [1 java/0.2.0 callers>http:*|corrupt,delay,empty,error,refused,reset,status,timeout,truncated]\n";
  private static final String SOME = "refused status:503";

  private static List<Told> told(List<String> lines) {
    return lines.stream().map(line -> new Gson().fromJson(line, Told.class)).toList();
  }

  @ParameterizedTest
  @CsvSource({OLDEST + ",parentbased_always_on", NEWEST + ",always_off"})
  void whatIsInjectedIsWhatReallyHappens(String agent, String sampler) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS, "OTEL_TRACES_SAMPLER", sampler);
    UnderAgent.Written written = UnderAgent.run(agent, Callers.class, ALL, environment);
    assertTrue(written.log().contains("ldfi-fit is on: Keys[k1], agent " + agent + "\n"), written.log());
    assertTrue(written.log().contains(REPORTED), written.log());
    assertEquals(PROGRAMS * ALL.split(" ").length + RETRIED, written.lines().size());
    for (Told each : told(written.lines())) {
      String which = each.caller() + ", " + each.kind();
      assertEquals(lessChance(each, each.really()), lessChance(each, each.injected()), which);
      int calls = each.caller().endsWith("tries again") ? 2 : 1;
      assertEquals(each.kind().replace("-n1", ""), each.fired(), which);
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
    assertNothingHappens(UnderAgent.run(NEWEST, Callers.class, SOME, Map.of()));
  }

  @Test
  void withKeysThatCannotBeReadNothingHappens() throws Exception {
    UnderAgent.Written written = UnderAgent.run(NEWEST, Callers.class, SOME, Map.of("FIT_KEYS", "k1:short"));
    assertNothingHappens(written);
    assertTrue(written.log().contains("FIT_KEYS cannot be read"), written.log());
  }

  @Test
  void underAnAgentThatIsTooOldNothingHappens() throws Exception {
    UnderAgent.Written written = UnderAgent.run(TOO_OLD, Callers.class, SOME, Map.of("FIT_KEYS", UnderAgent.KEYS));
    assertNothingHappens(written);
    assertTrue(written.log().contains("ldfi-fit is off: agent " + TOO_OLD + " is too old"), written.log());
  }

  private static void assertNothingHappens(UnderAgent.Written written) {
    assertTrue(written.log().contains("reported: []\n"), written.log());
    assertEquals(PROGRAMS * SOME.split(" ").length + RETRIED, written.lines().size());
    for (Told each : told(written.lines())) {
      String which = each.caller() + ", " + each.kind();
      assertTrue(each.injected().startsWith("200") || each.injected().startsWith("[102"), which + each.injected());
      assertEquals("null", each.fired(), which);
      assertEquals("null null null", each.root(), which);
    }
  }
}
