package dev.ldfi.fit.edge;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class KnownTest {
  private final Known known = new Known(new Allowances());
  private final Moment later = Moment.now().after(60);

  private static Lease of(String version) {
    return new Lease(version, 5, true, List.of(), Set.of());
  }

  private void hear(String version, boolean asOffer) {
    if (asOffer) {
      known.offer(of(version));
    } else {
      known.lease(of(version), later);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "e-10, e-9, e-10", "e-9, e-10, e-10", "e-9, f-1, f-1", "f-9, e-10, e-10", "v, w, w", "-2, -10, -10"
  })
  void olderRulesNeverReplaceNewerOnes(String first, String then, String want) {
    Stream.of(true, false)
        .forEach(
            isFirstOffered -> {
              known.silence();
              hear(first, isFirstOffered);
              hear(then, !isFirstOffered);
              assertEquals(want, known.rules().lease.version);
            });
  }

  @Test
  void whatIsOfferedIsInForceForAsLongAsWhatWasBefore() {
    known.offer(of("e-1"));
    assertEquals("e-1", known.rules().lease.version);
    assertFalse(known.rules().isInForce());

    Held granted = known.grant("e-1", later);
    assertSame(granted, known.rules());
    assertSame(later, granted.ends);
    assertSame(later, known.grant("e-1", Moment.now()).ends);
    assertNull(known.grant("e-0", later.after(60)));

    known.offer(of("e-2"));
    assertTrue(known.rules().isInForce());
    known.withdraw();
    assertEquals("e-2", known.rules().lease.version);
    known.lapse();
    assertSame(Held.QUIET, known.rules());
  }

  @Test
  void aLeaseOfAnotherEpochIsBelievedAndTheStreamIsNot() {
    known.offer(of("e-9"));
    known.lease(of("e-10"), later);
    assertTrue(known.rules().streamed);
    known.lease(of("f-1"), later);
    assertFalse(known.rules().streamed);
  }
}
