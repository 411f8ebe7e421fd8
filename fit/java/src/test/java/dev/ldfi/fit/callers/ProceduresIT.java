package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.Gson;
import dev.ldfi.fit.Vectors;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What callers of a procedure see of each kind of fault is what they see when it really happens. */
class ProceduresIT {
  private static final List<String> KINDS =
      Stream.concat(
              Vectors.connecting("rpc").stream(),
              Stream.of("error", "timeout", "delay", Procedures.SHORT, "grpc:NOT_FOUND", "grpc:UNAVAILABLE", "grpc:INTERNAL"))
          .toList();
  private static final int PROGRAMS = 4;

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#all")
  void whatIsInjectedIsWhatReallyHappens(Cell cell) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    UnderAgent.Written written = UnderAgent.run(cell, Procedures.class, String.join(" ", cell.of(KINDS)), environment);
    assertEquals(PROGRAMS * (cell.of(KINDS).size() + 1), written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      String which = each.caller() + ", " + each.kind();
      assertEquals(each.really(), each.injected(), which);
      boolean through = each.caller().endsWith(Dependency.BY_ADDRESS);
      String fired = each.kind().equals(Procedures.SHORT) ? "delay" : each.kind();
      assertEquals(through ? "null" : fired, each.fired(), which);
      assertEquals(1, each.calls(), which);
      assertEquals("e7c1 treatment 1", each.root(), which);
    }
  }
}
