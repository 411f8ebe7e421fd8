package dev.ldfi.fit.edge;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What allowances are where devices are asked for; what they count without it is in the vectors. */
class AllowancesTest {
  private final Allowances counted = new Allowances();

  private static Asking whom(String experiment, long mark) {
    return new Asking(experiment, Arm.CONTROL, mark);
  }

  @Test
  void anOfferGivesNoAllowance() {
    Map<String, Long> offered = new HashMap<>(Map.of("e1", 3L));
    offered.put("e2", null);
    counted.offer(offered);
    for (String each : offered.keySet()) {
      assertEquals(Allowances.Answer.TURNED_AWAY, counted.admit(whom(each, 1)));
      assertFalse(counted.isUsedUp(whom(each, 1)));
    }
    counted.offer(Map.of("e3", 0L));
    assertTrue(counted.isUsedUp(whom("e3", 1)));

    counted.renew(Map.of("e1", 3L));
    counted.offer(Map.of("e1", 0L)); // what was given is never taken back
    assertEquals(Allowances.Answer.ADMITTED, counted.admit(whom("e1", 1)));
  }

  @Test
  void whoWasGrantedIsEnrolledOnceAndAskedForNoMore() {
    counted.renew(Map.of("e1", 0L));
    assertTrue(counted.settled(counted.ask(), true, whom("e1", 1)));
    assertTrue(counted.settled(counted.ask(), true, whom("e1", 1)));
    assertFalse(counted.settled(counted.ask(), true, whom("e2", 1)));
    assertFalse(counted.isUsedUp(whom("e1", 1)));
    assertEquals(Allowances.Answer.ADMITTED_BEFORE, counted.admit(whom("e1", 1)));
    assertEquals("e1:1", counted.report().control());
    assertFalse(counted.isUrgent()); // who grants knows of it
  }

  @Test
  void asksAreSettledWhenAllBeforeThemAre() {
    int one = counted.ask();
    int two = counted.ask();
    int three = counted.ask();
    counted.settled(three, false, whom("e1", 1));
    assertEquals(0, counted.report().asked);
    assertFalse(counted.hasNews());
    counted.settled(one, false, whom("e1", 1));
    assertEquals(one, counted.report().asked);
    assertTrue(counted.hasNews());
    counted.settled(two, false, whom("e1", 1));
    assertEquals(three, counted.report().asked);
    counted.settle(counted.report());
    assertFalse(counted.hasNews());
  }

  @Test
  void asksAreNotSaidToBeSettledWhileSomebodyTheyEnrolledIsLeftOut() {
    Map<String, Long> members = new HashMap<>();
    for (int i = 0; i < 80; i++) { // more than a URL holds
      members.put(String.format("%02d", i) + String.join("", Collections.nCopies(60, "x")), 0L);
    }
    counted.renew(members);
    members.keySet().forEach(each -> counted.settled(counted.ask(), true, whom(each, 1)));
    Allowances.Report first = counted.report();
    assertTrue(first.counts.size() < 80);
    assertEquals(0, first.asked);
  }

  @Test
  void whoCameWhileAReportWasUnderWayIsReportedEvenIfTheRuleHasLeftSince() {
    counted.renew(Collections.singletonMap("e1", null));
    counted.admit(whom("e1", 1));
    Allowances.Report heard = counted.report();
    counted.admit(whom("e1", 2));
    counted.offer(Map.of());
    counted.settle(heard);
    assertEquals("e1:2", counted.report().control());
    counted.settle(counted.report());
    assertEquals("", counted.report().control());
  }
}
