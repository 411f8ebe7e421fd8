package dev.ldfi.fit.edge;

import dev.ldfi.fit.NotUnderstood;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URLEncoder;
import java.security.SecureRandom;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * An edge's line to the control plane, beside the requests. A stream tells which rules there are. What lets the edge
 * act on them is a lease, which it fetches by a long poll, and only while it has devices enrolled or may enrol some; by
 * the same it reports how many. While the line is down it tries again, ever more slowly, and the lease that it holds
 * runs out by itself. A control plane that knows no streams answers with a lease instead of one, and so it is polled
 * without end.
 */
final class Poll {
  private static final Logger LOGGER = Logger.getLogger(Poll.class.getName());
  private static final int WAIT = 2; // seconds
  private static final int ARMED_WAIT = 1; // what was treated is never older at the control plane
  private static final long SHORTEST_PAUSE = 100; // milliseconds, from one question to the next
  private static final long RETRY_AFTER = 500;
  private static final long LONGEST_RETRY = 10_000;
  private static final int ANSWER_WITHIN = 5; // how many seconds later than asked for an answer may come

  final Service service;
  final String edge = Long.toHexString(new SecureRandom().nextLong() | Long.MIN_VALUE);
  final Allowances allowances = new Allowances();
  final Known known = new Known(allowances);

  private final Executor unseen;
  private final Asks asks;
  private final Offers offers = new Offers(this);
  private final Answers answers = new Answers();
  private final AtomicBoolean begun = new AtomicBoolean();
  private final Semaphore news = new Semaphore(0); // there may be something to poll for
  private volatile boolean streams;

  /**
   * One of this service.
   *
   * @param unseen runs what asks where nobody's tracing sees it
   * @param within for how many milliseconds a request waits for its device to be granted
   */
  Poll(Service service, Executor unseen, int within) {
    this.service = service;
    this.unseen = unseen;
    this.asks = new Asks(this, unseen, within);
  }

  /** Begins to listen and to poll, once. */
  void start() {
    if (!begun.get() && begun.compareAndSet(false, true)) {
      begin("ldfi-fit-edge-offers", offers::listen);
      begin("ldfi-fit-edge", this::renew);
    }
  }

  /** Asks the control plane something. */
  private interface Question {
    void ask() throws IOException, InterruptedException;
  }

  private void begin(String name, Question question) {
    Thread thread = new Thread(() -> unseen.execute(() -> repeat(question)), name);
    thread.setDaemon(true);
    thread.setContextClassLoader(null); // hold on to no application
    thread.start();
  }

  private void repeat(Question question) {
    int failures = 0;
    try {
      while (true) {
        Moment held = Moment.now().after(LONGEST_RETRY / 1000.0);
        try {
          question.ask();
          failures = 0;
        } catch (IOException | RuntimeException | StackOverflowError down) {
          if (held.left() <= 0) {
            failures = 0; // a stream that was held for long and breaks is the first failure, not one more
          }
          if (++failures == 1) {
            LOGGER.log(Level.WARNING, "fit: no rules from {0}: {1}", new Object[] {service, down});
          }
        }
        Thread.sleep(failures == 0 ? SHORTEST_PAUSE : backoff(failures));
      }
    } catch (InterruptedException stopped) {
      known.silence();
    }
  }

  /** Waits until there is something to poll for, and fetches a lease. */
  private void renew() throws IOException, InterruptedException {
    while (!isDue()) {
      news.acquire();
      news.drainPermits();
    }
    Moment asked = Moment.now();
    Allowances.Report report = allowances.report();
    String more = "&asked=" + report.asked + "&late=" + report.late;
    int within = seconds() + ANSWER_WITHIN;
    HttpURLConnection answer = question("application/json", report, more, 1000 * within);
    try {
      hold(answers.read(Service.whole(answer, asked.after(within))), asked, report);
    } catch (NotUnderstood unread) {
      known.lapse(); // perhaps it said stop
      throw unread;
    }
  }

  /** Whether the edge has something to keep or to tell, and nobody else asks for leases. */
  boolean isDue() {
    return streams && (known.rules().lease.allots() || allowances.hasNews());
  }

  /** Has whoever polls look whether there is something to poll for. */
  void tell() {
    news.release();
  }

  /** Takes note whether the control plane knows streams. */
  void served(boolean asStream) {
    streams = asStream;
    tell();
  }

  /** Puts a lease in force: the answer to what was asked then, when this was reported. */
  void hold(Lease read, Moment asked, Allowances.Report report) {
    allowances.settle(report);
    known.lease(read, asked.after(read.seconds));
  }

  /** For how long an answer may wait for other rules. */
  private int seconds() {
    return allowances.isUrgent() ? 0 : known.latest().lease.rules.isEmpty() ? WAIT : ARMED_WAIT;
  }

  /**
   * Asks for rules, as a stream or as a lease, and reports. A control plane that knows no streams refuses parameters
   * that it does not know, so more is only for one that does.
   */
  HttpURLConnection question(String accept, Allowances.Report report, String more, int silent) throws IOException {
    Lease now = known.latest().lease;
    String question = // reports are of letters that stand in a URL as they are
        "/api/v1/edge/rules?version="
            + URLEncoder.encode(now.version, "UTF-8")
            + "&wait="
            + seconds()
            + "&edge="
            + edge
            + "&used="
            + report.used()
            + "&control="
            + report.control()
            + "&wants="
            + (now.asks ? "" : report.wants()) // else who is wanted is asked for
            + more;
    return service.get(question, accept, silent);
  }

  /** Enrols a device, by itself or by asking for it; null where it is in neither arm. */
  Admission enrol(Held held, Asking whom) {
    if (held.lease.asks && allowances.isUsedUp(whom)) {
      return asks.ask(held.lease.version, whom);
    }
    if (!held.isInForce()) {
      return null;
    }
    Allowances.Answer answer = allowances.admit(whom);
    return answer == Allowances.Answer.TURNED_AWAY
        ? null
        : new Admission(held, answer == Allowances.Answer.ADMITTED_BEFORE);
  }

  /** Doubles from half a second to ten, less a random part, so that many edges do not come back at once. */
  private static long backoff(int failures) {
    long longest = Math.min(LONGEST_RETRY, RETRY_AFTER << Math.min(failures - 1, 10));
    return longest / 2 + ThreadLocalRandom.current().nextLong(longest / 2);
  }
}
