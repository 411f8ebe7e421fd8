package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.Gson;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What callers of a database see of each kind of fault is what they see when it really happens to PostgreSQL. */
class DatabasesIT {
  private static final List<String> KINDS =
      List.of("sql:readonly", "sql:lost", "sql:deadlock", "sql:serialization", "reset", "timeout", "delay", "error");
  private static final int PROGRAMS = 9;
  private static final int OF_ANOTHER = 3;

  @BeforeAll
  static void isInstalled() {
    boolean installed = PostgreSqlServer.installed().isPresent();
    assertTrue(installed || System.getenv("CI") == null, "PostgreSQL is not installed, and CI has to run this test");
    assumeTrue(installed, "PostgreSQL is not installed");
  }

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#all")
  void whatIsInjectedIsWhatReallyHappens(Cell cell) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    UnderAgent.Written written = UnderAgent.run(cell, Databases.class, String.join(" ", cell.of(KINDS)), environment);
    assertEquals(PROGRAMS * cell.of(KINDS).size() + OF_ANOTHER, written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      String which = each.caller() + ", " + each.kind();
      assertEquals(1, each.calls(), which);
      assertEquals("e7c1 treatment 1", each.root(), which);
      if (cannot(each)) {
        assertEquals("null", each.fired(), which);
      } else {
        assertEquals(each.kind(), each.fired(), which);
        assertEquals(each.caller().equals("H2") ? "1" : each.really(), each.injected(), which);
      }
    }
  }

  /** Whether this statement cannot fail in this way as it really would. */
  private static boolean cannot(Told each) {
    boolean mayRead = each.caller().startsWith("CallableStatement") && each.kind().equals("sql:readonly");
    return mayRead || each.caller().equals("H2") && !each.kind().equals("delay");
  }
}
