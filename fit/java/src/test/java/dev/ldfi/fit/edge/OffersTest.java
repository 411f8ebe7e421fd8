package dev.ldfi.fit.edge;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.ldfi.fit.NotUnderstood;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class OffersTest {
  private final Poll poll = new Poll(new Service("http://127.0.0.1:9", "t", "header"), Runnable::run, Asks.WITHIN);
  private final Offers offers = new Offers(poll);

  private static String event(String version) {
    return "data: {\"version\":\"" + version + "\",\ndata:\"lease_seconds\":0,\"asks\":true,\"rules\":[]}\n\n";
  }

  private static InputStream of(String stream) {
    return new ByteArrayInputStream(stream.getBytes(StandardCharsets.UTF_8));
  }

  private void told(String version, String stream) {
    assertDoesNotThrow(() -> offers.follow(of(stream)));
    assertEquals(version, poll.known.rules().lease.version);
  }

  @Test
  void eventsAreRead() {
    told("e-2", event("e-1") + ":\n\n\n" + event("e-2"));
    told("e-3", ("id: 1\nretry:5\nnothing\n" + event("e-3")).replace("\n", "\r\n"));
  }

  @Test
  void whatIsNoEventTellsNothing() {
    String half = event("e-1");
    for (String stream : List.of(half.substring(0, half.length() - 1), ":\n\n", "")) {
      IOException ended = assertThrows(IOException.class, () -> offers.follow(of(stream)));
      assertEquals("the stream says nothing", ended.getMessage());
    }
  }

  @Test
  void whatIsNotUnderstoodIsNot() {
    String line = String.join("", Collections.nCopies(Service.MAX_ANSWER + 1, " "));
    String many = String.join("", Collections.nCopies(Service.MAX_ANSWER / 999, "data:" + line.substring(0, 1000) + "\n"));
    for (String stream : List.of(event("e-1") + "data: {}\n\n", "data: " + line + "\n\n", many)) {
      assertThrows(NotUnderstood.class, () -> offers.follow(of(stream)));
    }
  }

  @Test
  void aLeaseOfAnotherEpochHasTheStreamOpenedAnew() {
    InputStream leased = // takes its effect between the first event and what says that the line is open
        new InputStream() {
          @Override
          public int read() {
            poll.known.lease(new Lease("f-1", 5, true, List.of(), Collections.emptySet()), Moment.now().after(5));
            return -1;
          }
        };
    InputStream stream = new SequenceInputStream(Collections.enumeration(List.of(of(event("e-9")), leased, of(":\n"))));
    IOException ended = assertThrows(IOException.class, () -> offers.follow(stream));
    assertEquals("the stream tells of another epoch than the lease", ended.getMessage());
  }
}
