package dev.ldfi.fit.edge;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * An edge's line to the control plane: a long poll in a thread of its own, which fetches the rules, as a lease, and
 * reports how many devices were treated. While the line is down it tries again, ever more slowly, and the lease that it
 * holds runs out by itself.
 */
final class Poll {
  private static final Logger LOGGER = Logger.getLogger(Poll.class.getName());
  private static final int WAIT = 2; // seconds
  private static final int ARMED_WAIT = 1; // what was treated is never older at the control plane
  private static final long SHORTEST_PAUSE = 100; // milliseconds, from one question to the next
  private static final long RETRY_AFTER = 500;
  private static final long LONGEST_RETRY = 10_000;
  private static final int ANSWER_WITHIN = 5000; // how much later than asked for an answer may come
  private static final int MAX_ANSWER = 4 << 20; // bytes; more is no answer to this question

  final Allowances allowances = new Allowances();

  private final String url;
  private final String token;
  private final Executor unseen;
  private final String edge = Long.toHexString(new SecureRandom().nextLong() | Long.MIN_VALUE);
  private final AtomicBoolean begun = new AtomicBoolean();
  private volatile Held held = Held.QUIET;
  private byte[] answer = {}; // the last one, and what was read in it
  private Lease answered;

  /**
   * One of the service at this address.
   *
   * @param unseen runs what asks where nobody's tracing sees it
   */
  Poll(String url, String token, Executor unseen) {
    this.url = url.replaceAll("/+$", "");
    this.token = token;
    this.unseen = unseen;
  }

  /** The rules in force; those of nobody when the last lease has run out. */
  Held held() {
    Held now = held;
    return now.lease.rules.isEmpty() || now.ends.left() <= 0 ? Held.QUIET : now;
  }

  /** Begins to poll, once. */
  void start() {
    if (!begun.get() && begun.compareAndSet(false, true)) {
      Thread thread = new Thread(() -> unseen.execute(this::run), "ldfi-fit-edge");
      thread.setDaemon(true);
      thread.setContextClassLoader(null); // hold on to no application
      thread.start();
    }
  }

  private void run() {
    int failures = 0;
    while (true) {
      long askedAt = System.nanoTime();
      try {
        ask();
        failures = 0;
      } catch (IOException | RuntimeException | StackOverflowError down) {
        if (++failures == 1) {
          LOGGER.log(Level.WARNING, "fit: no rules from {0}: {1}", new Object[] {url, down});
        }
      }
      long took = (System.nanoTime() - askedAt) / 1_000_000;
      try {
        Thread.sleep(Math.max(0, failures == 0 ? SHORTEST_PAUSE - took : backoff(failures)));
      } catch (InterruptedException stopped) {
        held = Held.QUIET;
        return;
      }
    }
  }

  private void ask() throws IOException {
    Moment asked = Moment.now();
    List<Allowances.Enrolled> report = allowances.report();
    byte[] body = fetch(report);
    try {
      if (answered == null || !Arrays.equals(body, answer)) { // else nothing has changed, byte for byte
        answered = Rules.read(text(body));
        answer = body;
      }
    } catch (RuntimeException | StackOverflowError unread) {
      held = Held.QUIET; // perhaps it said stop
      throw unread;
    }
    allowances.settle(report);
    Map<String, Long> members = new LinkedHashMap<>();
    answered.rules.forEach(rule -> members.put(rule.experiment, rule.members));
    allowances.renew(members);
    held = new Held(answered, asked.after(answered.seconds));
  }

  private static String text(byte[] body) {
    if (body.length > MAX_ANSWER) {
      throw new NotUnderstood("more than " + MAX_ANSWER + " bytes");
    }
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
    } catch (CharacterCodingException none) {
      throw new NotUnderstood("no UTF-8");
    }
  }

  private byte[] fetch(List<Allowances.Enrolled> report) throws IOException {
    Lease now = held.lease;
    int wait = allowances.isUrgent() ? 0 : now.rules.isEmpty() ? WAIT : ARMED_WAIT;
    String asks =
        url
            + "/api/v1/edge/rules?version="
            + URLEncoder.encode(now.version, "UTF-8")
            + "&wait="
            + wait
            + "&edge="
            + edge
            + "&used=" // of letters that stand in a URL as they are
            + Allowances.used(report)
            + "&control="
            + Allowances.control(report)
            + "&wants="
            + Allowances.wants(report);
    HttpURLConnection connection = (HttpURLConnection) new URL(asks).openConnection();
    connection.setInstanceFollowRedirects(false); // the token goes to the control plane and to nobody it might name
    connection.setUseCaches(false);
    connection.setConnectTimeout(ANSWER_WITHIN);
    connection.setReadTimeout(1000 * wait + ANSWER_WITHIN);
    connection.setRequestProperty("Authorization", "Bearer " + token);
    connection.setRequestProperty("Accept", "application/json");
    if (connection.getResponseCode() / 100 != 2) {
      connection.disconnect();
      throw new IOException("it answers with " + connection.getResponseCode());
    }
    try (InputStream body = connection.getInputStream()) {
      return whole(body, Moment.now().after(wait + ANSWER_WITHIN / 1000.0));
    }
  }

  private static byte[] whole(InputStream body, Moment until) throws IOException {
    ByteArrayOutputStream read = new ByteArrayOutputStream();
    byte[] part = new byte[8192];
    for (int size = body.read(part); size >= 0 && read.size() <= MAX_ANSWER; size = body.read(part)) {
      read.write(part, 0, size);
      if (until.left() <= 0) {
        throw new IOException("its answer takes too long");
      }
    }
    return read.toByteArray();
  }

  /** Doubles from half a second to ten, less a random part, so that many edges do not come back at once. */
  private static long backoff(int failures) {
    long longest = Math.min(LONGEST_RETRY, RETRY_AFTER << Math.min(failures - 1, 10));
    return longest / 2 + ThreadLocalRandom.current().nextLong(longest / 2);
  }
}
