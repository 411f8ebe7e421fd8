package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.Gson;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What producers see of each kind of fault is what they see when it really happens to Kafka. */
class MessagesIT {
  private static final List<String> KINDS = List.of("error", "refused", "timeout", "delay", Messages.LATER);
  private static KafkaBroker broker;

  @BeforeAll
  static void isInstalled() throws Exception {
    boolean installed = KafkaBroker.installed().isPresent();
    assertTrue(installed || System.getenv("CI") == null, KafkaBroker.lacking() + ", and CI has to run this test");
    assumeTrue(installed, KafkaBroker.lacking());
    broker = KafkaBroker.start(Producers.TOPIC);
  }

  @AfterAll
  static void isLeft() {
    if (broker != null) {
      broker.close();
    }
  }

  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void whatIsInjectedIsWhatReallyHappens(Cell cell) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    String told = broker.port + " " + broker.pid() + " " + String.join(" ", KINDS);
    UnderAgent.Written written = UnderAgent.run(cell, Messages.class, told, environment);
    int programs = Producers.programs().size();
    int letThrough = Producers.letThrough().size();
    assertEquals(programs * KINDS.size() + letThrough, written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      String which = each.caller() + ", " + each.kind();
      boolean fires = Producers.programs().containsKey(each.caller());
      assertEquals(each.really(), each.injected(), which);
      assertEquals(fires ? each.kind().replaceAll("-.*", "") : "null", each.fired(), which);
      assertEquals(1, each.calls(), which);
    }
    assertTrue(written.log().contains("callers>message:*|delay,error,refused,timeout"), written.log());
  }

  /** What is seen by who asks for messages is what is seen when there is no broker, or none that answers. */
  @ParameterizedTest
  @MethodSource("dev.ldfi.fit.callers.Cell#corners")
  void whoAsksForMessagesSeesWhatReallyHappens(Cell cell) throws Exception {
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    List<String> kinds = List.of("error", "refused", "timeout", "delay", Receipts.LATER);
    String told = broker.port + " " + broker.pid() + " " + String.join(" ", kinds);
    UnderAgent.Written written = UnderAgent.run(cell, Receipts.class, told, environment);
    assertEquals(2 * (kinds.size() + 2), written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      String which = each.caller() + ", " + each.kind();
      String fired = each.kind().replaceAll("-.*", "");
      assertEquals(each.really(), each.injected(), which);
      assertEquals(each.caller().equals(Receipts.IN_CONTROL) ? Told.WOULD + fired : fired, each.fired(), which);
      assertEquals(each.caller().equals(Receipts.WHOSE_MESSAGE) ? 2 : 1, each.calls(), which);
    }
  }
}
