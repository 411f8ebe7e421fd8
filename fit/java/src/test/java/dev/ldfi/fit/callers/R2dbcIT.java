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

/** What callers of R2DBC see of each kind of fault is what they see when it really happens to PostgreSQL. */
class R2dbcIT {
  private static final List<String> KINDS =
      List.of("sql:readonly", "sql:lost", "sql:deadlock", "sql:serialization", "reset", R2dbc.LATER, "error");

  @BeforeAll
  static void isInstalled() {
    boolean installed = PostgreSqlServer.installed().isPresent();
    assertTrue(installed || System.getenv("CI") == null, "PostgreSQL is not installed, and CI has to run this test");
    assumeTrue(installed, "PostgreSQL is not installed");
  }

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void whatIsInjectedIsWhatReallyHappens(Cell cell) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    UnderAgent.Written written = UnderAgent.run(cell, R2dbc.class, String.join(" ", KINDS), environment);
    assertEquals(R2dbc.programs().size() * KINDS.size(), written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      String which = each.caller() + ", " + each.kind();
      assertEquals(each.really(), each.injected(), which);
      assertEquals(each.kind().equals(R2dbc.LATER), each.injected().startsWith("late, 1"), which);
      assertEquals(each.kind().replaceAll("-.*", ""), each.fired(), which);
      assertEquals(1, each.calls(), which);
      assertEquals("e7c1 treatment 1", each.root(), which);
    }
  }
}
