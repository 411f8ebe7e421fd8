package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Methods that were named fail as they say that they can, and others, and in other ways, not at all. */
class MethodsIT {
  private static final Map<String, String> NAMED =
      Map.of("FIT_KEYS", UnderAgent.KEYS, "LDFI_METHODS", "dev.ldfi.fit.callers.Prices[read]; nonsense");
  private static final String ERROR = "io.opentelemetry.javaagent.ldfi.methods.InjectedFault: fault injected at ";
  private static final String UNHURT = "price of tea, price of 7";

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void theyFailAsTheySayThatTheyCan(Cell cell) throws Exception {
    UnderAgent.Written written = UnderAgent.run(cell, Methods.class, "", NAMED);
    Map<String, Methods.Called> calls = new HashMap<>();
    for (String line : written.lines()) {
      Methods.Called call = new Gson().fromJson(line, Methods.Called.class);
      calls.put(call.method() + " " + call.kind(), call);
    }
    hit(calls, "read error", ERROR + "dev.ldfi.fit.callers.Prices.read < ");
    hit(calls, "read exception:IOException", Seen.failed(really()));
    letAlone(calls, "read exception:Gone", UNHURT, 2);
    letAlone(calls, "read exception:IllegalStateException", UNHURT, 2);
    hit(calls, "total error", ERROR + "dev.ldfi.fit.callers.Prices.total < ");
    hit(calls, "total exception:Gone", Seen.failed(gone()));
    hit(calls, "total exception:IllegalStateException", "java.lang.IllegalStateException: fault injected < ");
    letAlone(calls, "total exception:IOException", "6", 1);
    assertEquals(List.of("delay UNSET", "delay UNSET"), calls.get("read delay").fired());
    assertEquals(List.of("delay UNSET"), calls.get("total delay").fired());
    assertTrue(calls.get("read delay").late() && calls.get("total delay").late());
    for (String kind : List.of("error", "delay", "exception:IOException")) {
      letAlone(calls, "later " + kind, "later", 0);
      letAlone(calls, "unnamed " + kind, "unnamed", 0);
    }
    String reported = "callers>method:*|delay,error,exception callers>library:fit callers>library:methods]";
    assertTrue(written.log().contains("reported: [1 java/0.2.0 " + reported), written.log());
    assertTrue(written.log().contains("\"nonsense\" names no methods"), written.log());
  }

  private static void hit(Map<String, Methods.Called> calls, String which, String seen) {
    Methods.Called call = calls.get(which);
    assertEquals(seen, call.seen(), which);
    assertEquals(List.of(call.kind() + " ERROR"), call.fired(), which);
  }

  private static void letAlone(Map<String, Methods.Called> calls, String which, String seen, int spans) {
    Methods.Called call = calls.get(which);
    assertEquals(seen, call.seen(), which);
    assertEquals(Collections.nCopies(spans, "null UNSET"), call.fired(), which);
  }

  /** What a caller sees of the method's own failure. */
  private static Exception really() {
    try {
      new Prices().read("");
    } catch (IOException failed) {
      return failed;
    }
    throw new AssertionError("it did not fail");
  }

  private static Exception gone() {
    Prices prices = new Prices();
    prices.leave();
    try {
      prices.total(1);
    } catch (Prices.Gone failed) {
      return failed;
    }
    throw new AssertionError("it did not fail");
  }
}
