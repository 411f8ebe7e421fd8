package io.opentelemetry.javaagent.ldfi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class OccurrencesTest {
  private final Occurrences counts = new Occurrences();

  @Test
  void callsAreCountedForEachTraceAndPoint() {
    assertTrue(counts.admits("t1", "p", 2));
    assertTrue(counts.admits("t1", "p", 2));
    assertFalse(counts.admits("t1", "p", 2));
    assertTrue(counts.admits("t2", "p", 2));
    assertTrue(counts.admits("t1", "q", 2));
  }

  @Test
  void theLongestUntouchedAreForgotten() {
    counts.admits("kept", "p", 1);
    for (int i = 0; i < 2 * Occurrences.REMEMBERED; i++) {
      counts.admits("t" + i, "p", 1);
      assertFalse(counts.admits("kept", "p", 1));
    }
    assertEquals(Occurrences.REMEMBERED, counts.size());
  }
}
