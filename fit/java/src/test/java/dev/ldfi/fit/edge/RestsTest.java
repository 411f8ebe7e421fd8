package dev.ldfi.fit.edge;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class RestsTest {
  private final Rests rests = new Rests(1000);

  @Test
  void failuresAreLetRestForLongerAndLonger() {
    for (long want : new long[] {250, 500, 1000, 1000}) {
      rests.failed(Moment.now().after(11)); // when any rest is over
      assertEquals(want, rests.left(), 100);
      assertEquals(Rests.Why.FAILED, rests.why("e1"));
    }
    rests.answered("e1", true);
    assertEquals(Rests.Why.NOT, rests.why("e1"));
    rests.failed(Moment.now());
    assertEquals(250, rests.left(), 100);
  }

  @Test
  void thoseThatFailTogetherAreOneFailure() {
    Moment began = Moment.now();
    for (int i = 0; i < 8; i++) {
      rests.failed(began);
      assertEquals(250, rests.left(), 100);
    }
  }

  @Test
  void oneThatWasRefusedRestsAlone() throws InterruptedException {
    rests.answered("e1", false);
    assertEquals(Rests.Why.REFUSED, rests.why("e1"));
    assertEquals(Rests.Why.NOT, rests.why("e2"));
    Thread.sleep(300);
    assertEquals(Rests.Why.NOT, rests.why("e1"));
  }
}
