package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.Gson;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What callers of a procedure see of each kind of fault is what they see when it really happens. */
class ProceduresIT {
  private static final List<String> KINDS =
      List.of("refused", "error", "timeout", "delay", Procedures.SHORT, "grpc:NOT_FOUND", "grpc:UNAVAILABLE", "grpc:INTERNAL");
  private static final int PROGRAMS = 4;

  @ParameterizedTest
  @ValueSource(strings = {"2.31.1", "2.33.1"})
  void whatIsInjectedIsWhatReallyHappens(String agent) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    UnderAgent.Written written = UnderAgent.run(agent, Procedures.class, String.join(" ", KINDS), environment);
    assertEquals(PROGRAMS * KINDS.size(), written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      String which = each.caller() + ", " + each.kind();
      assertEquals(each.really(), each.injected(), which);
      assertEquals(each.kind().equals(Procedures.SHORT) ? "delay" : each.kind(), each.fired(), which);
      assertEquals(1, each.calls(), which);
      assertEquals("e7c1 treatment 1", each.root(), which);
    }
  }
}
