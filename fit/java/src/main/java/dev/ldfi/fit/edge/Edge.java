package dev.ldfi.fit.edge;

import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Refused;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Decides once per request, where it comes in, whether it takes part in an experiment (docs/edge.md): contexts from
 * outside are taken out, and requests of devices in an arm are stamped, by the rules that it fetches from the service.
 * Whatever fails in here, the request goes on, unstamped.
 */
public final class Edge {
  private static final Logger LOGGER = Logger.getLogger(Edge.class.getName());

  private final Keys keys;
  private final Poll poll; // null: contexts are only taken out
  private final Halt halt;
  private final Set<String> told;
  private final Devices devices;
  private final AtomicLong lots = new AtomicLong();

  /**
   * The edge that an environment describes; without keys, LDFI_URL or LDFI_TOKEN it only takes contexts out.
   *
   * @param unseen runs what asks the service where nobody's tracing sees it
   */
  public Edge(Keys keys, Map<String, String> environment, Executor unseen) {
    String url = environment.getOrDefault("LDFI_URL", "");
    String token = environment.getOrDefault("LDFI_TOKEN", "");
    boolean asks = keys != null && !token.isEmpty() && url.matches("https?://[^/]+.*");
    this.keys = keys;
    this.devices = new Devices(environment);
    this.poll = asks ? new Poll(new Service(url, token, devices.kinds()), unseen, Asks.WITHIN) : null;
    this.halt = new Halt("1".equals(environment.get("FIT_HALT")), environment.get("FIT_HALT_FILE"));
    this.told = Chosen.read(environment.getOrDefault("FIT_FEATURES", ""));
    if (!url.isEmpty() && !url.matches("https?://[^/]+.*")) {
      LOGGER.log(Level.SEVERE, "the edge stays quiet: LDFI_URL is no http:// or https://");
    }
  }

  /** Tells which device a request comes from. */
  public Devices devices() {
    return devices;
  }

  /** Whether it can stamp, and not only take contexts out. */
  public boolean stamps() {
    return poll != null;
  }

  /** What an edge makes of a request. */
  public static final class Decision {
    /** The baggage header with which it goes on. */
    public final String header;

    /** The failure context in it; null for none. */
    public final String context;

    /** Its device was stamped for the same experiment before. */
    public final boolean again;

    Decision(String header, String context, boolean again) {
      this.header = header;
      this.context = context;
      this.again = again;
    }
  }

  /**
   * Decides on a request with this baggage, of this device. What else it says is asked only for devices that are
   * claimed; null for a request that is never stamped.
   */
  public Decision decide(String inbound, String device, Supplier<Arrived> request) {
    BaggageHeader read = new BaggageHeader(inbound);
    for (String each : read.values) {
      if (admits(each, device)) {
        return new Decision(BaggageHeader.with(read.others, each), each, false);
      }
    }
    Decision stamped = null;
    try {
      stamped = request == null || device.isEmpty() ? null : stamped(read.others, device, request);
    } catch (Refused | RuntimeException | StackOverflowError ours) {
      LOGGER.log(Level.FINE, "ldfi-fit leaves a request unstamped, for a fault of its own", ours);
    }
    return stamped == null ? new Decision(read.others, null, false) : stamped;
  }

  /** What the span of a request shall tell of its headers, cookies and baggage. */
  public Map<String, String> told(Supplier<Arrived> request) {
    return told.isEmpty() ? Collections.emptyMap() : request.get().chosen(told);
  }

  /** Begins to ask for rules, if it has not. */
  public void start() {
    if (poll != null) {
      poll.start();
    }
  }

  private boolean admits(String value, String device) {
    if (keys == null || device.isEmpty()) {
      return false;
    }
    try {
      return MessageDigest.isEqual(
          bytes(FailureContext.read(keys, value, Instant.now()).experiment), bytes(scenarioOf(device)));
    } catch (Refused refused) {
      return false;
    }
  }

  /** The experiment that stands for replaying on this device. */
  static String scenarioOf(String device) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes("ldfi scenario\n" + device));
      StringBuilder name = new StringBuilder("s-");
      for (int i = 0; i < 12; i++) {
        name.append(String.format("%02x", digest[i]));
      }
      return name.toString();
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException("every Java has SHA-256", missing);
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private Decision stamped(String others, String device, Supplier<Arrived> request) throws Refused {
    if (poll == null) {
      return null;
    }
    Held held = poll.known.rules();
    if (held.lease.rules.isEmpty() || halt.holds()) {
      return null;
    }
    long mark = Claim.markOf(device);
    Lease.Claimed chosen = choose(held.lease, mark, request);
    if (chosen == null) {
      return null;
    }
    String value = sign(held, chosen, device);
    if (BaggageHeader.with(others, value).length() > BaggageHeader.MAX_LENGTH) { // whenever it expires
      return null;
    }
    Admission admission = poll.enrol(held, new Asking(chosen.rule.experiment, chosen.arm, mark));
    if (admission == null) {
      return null;
    }
    if (admission.under != held) {
      value = sign(admission.under, chosen, device);
    }
    return new Decision(BaggageHeader.with(others, value), value, admission.again);
  }

  /** The first of the claims on a device whose class the request is of; null for none. */
  private static Lease.Claimed choose(Lease lease, long mark, Supplier<Arrived> request) {
    List<Lease.Claimed> claims = lease.claims(mark);
    if (claims.isEmpty()) {
      return null;
    }
    Map<String, String> features = request.get().features(lease.wanted);
    return claims.stream().filter(each -> each.rule.isOf(features)).findFirst().orElse(null);
  }

  /**
   * Signs once per experiment, arm and lease; once per request only where lengths are drawn. A context expires by the
   * wall clock, for it is read on other machines. It holds for longer than the lease where the rule asks for that.
   */
  private String sign(Held held, Lease.Claimed chosen, String device) throws Refused {
    Rule rule = chosen.rule;
    long expires = (System.currentTimeMillis() + Math.max(held.ends.left(), rule.patience) + 999) / 1000;
    String lot = rule.draws ? rule.salt + "\n" + device + "\n" + lots.incrementAndGet() : "";
    String what = rule.experiment + " " + chosen.arm + " " + expires;
    String known = rule.draws ? null : held.signed(what);
    if (known != null) {
      return known;
    }
    String value = new Stamp(rule.experiment, chosen.arm, expires, rule.faults, rule.delay, lot).sign(keys);
    if (!rule.draws) {
      held.remember(what, value);
    }
    return value;
  }
}
