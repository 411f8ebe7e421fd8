package dev.ldfi.fit.edge;

import dev.ldfi.fit.NotUnderstood;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.util.Locale;

/**
 * The stream that tells an edge which rules there are. A control plane that knows no streams answers with a lease
 * instead, and then this polls for leases without end.
 */
final class Offers {
  private static final String EVENTS = "text/event-stream";
  private static final int SILENT = 25_000; // milliseconds; a line that says nothing comes every ten seconds

  private final Poll poll;
  private final Answers answers = new Answers();

  Offers(Poll poll) {
    this.poll = poll;
  }

  /** Opens a stream, and follows it until it ends. */
  void listen() throws IOException {
    try {
      opened();
    } catch (NotUnderstood unread) {
      poll.known.silence(); // perhaps it said stop
      throw unread;
    } catch (IOException | RuntimeException ended) {
      poll.known.withdraw();
      throw ended;
    }
  }

  private void opened() throws IOException {
    Moment asked = Moment.now();
    Allowances.Report report = poll.allowances.report();
    HttpURLConnection answer = poll.question(EVENTS + ", application/json;q=0.9", report, "", SILENT);
    boolean streams = String.valueOf(answer.getContentType()).toLowerCase(Locale.ROOT).startsWith(EVENTS);
    poll.served(streams);
    if (!streams) {
      poll.known.withdraw();
      poll.hold(answers.read(Service.whole(answer, asked.after(SILENT / 1000.0))), asked, report);
      return;
    }
    try (InputStream body = answer.getInputStream()) {
      follow(body);
    } finally {
      answer.disconnect();
    }
  }

  /** Takes over the rules of each event. A stream that ends in good order is none that has failed. */
  void follow(InputStream stream) throws IOException {
    Events events = new Events(stream);
    int told = 0;
    for (Events.Line line = events.next(); line != Events.Line.END; line = events.next()) {
      if (line == Events.Line.EVENT) {
        poll.known.offer(answers.read(events.data()));
        poll.tell();
        told++;
      } else if (line == Events.Line.OTHER && told > 0 && !poll.known.latest().streamed) {
        throw new IOException("the stream tells of another epoch than the lease");
      }
    }
    if (told == 0) {
      throw new IOException("the stream says nothing");
    }
  }
}
