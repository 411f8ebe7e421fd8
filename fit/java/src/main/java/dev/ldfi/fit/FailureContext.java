package dev.ldfi.fit;

import dev.ldfi.fit.Refused.Reason;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.Map;

/** A verified failure context: what travels with a request and says which of its calls fail. */
public final class FailureContext {
  /** The name of the baggage entry that holds it. */
  public static final String ENTRY = "fit";

  /** The most characters it has. SDKs drop an entry that with its name exceeds 4,096. */
  public static final int MAX_LENGTH = 4096 - "fit=".length();

  private static final int PARTS = 7;
  private static final int MAX_EXPERIMENT = 64;
  private static final int MAX_EXPIRY = 12; // digits

  /**
   * How far ahead an expiry may lie: an hour, which is the most that anybody asks for, and a minute for
   * clocks that differ. Whoever gets hold of a signed context cannot use it for years.
   */
  private static final Duration LONGEST = Duration.ofSeconds(3660);

  public final String experiment;

  /** In the control arm nothing fires, and each point records that it would have. */
  public final boolean control;

  public final Instant expires;

  /** By the hash of the point's name. */
  public final Map<String, Injection> injections;

  private FailureContext(String experiment, boolean control, Instant expires, Map<String, Injection> injections) {
    this.experiment = experiment;
    this.control = control;
    this.expires = expires;
    this.injections = Collections.unmodifiableMap(injections);
  }

  /** The arm, as marks and specifications have it. */
  public String arm() {
    return control ? "control" : "treatment";
  }

  /** What shall happen, or in the control arm would happen, at the point of this name; null: nothing. */
  public Injection at(String point) {
    return injections.get(Points.hash(point));
  }

  /**
   * Verifies and reads one. The MAC is checked before anything else is believed.
   *
   * @throws Refused where it must not be obeyed
   */
  public static FailureContext read(Keys keys, String value, Instant now) throws Refused {
    return read(keys, value, now, Duration.ZERO);
  }

  /**
   * Reads one although it has expired, by less than {@code grace}; whoever gives any has to look at {@link #expires}.
   *
   * @throws Refused where it must not be recognized
   */
  public static FailureContext read(Keys keys, String value, Instant now, Duration grace) throws Refused {
    if (value.length() > MAX_LENGTH) {
      throw new Refused(Reason.MALFORMED);
    }
    String[] parts = value.split("\\.", -1);
    if (parts.length != PARTS || !isOfTheGrammar(parts)) {
      throw new Refused(Reason.MALFORMED);
    }
    Notation faults = Notation.read(parts[0].charAt(0), parts[5]);
    if (faults == null) {
      throw new Refused(Reason.MALFORMED);
    }
    if (!keys.verifies(value.substring(0, value.length() - Keys.MAC_LENGTH - 1), parts[1], parts[6])) {
      throw new Refused(Reason.FORGED);
    }
    Instant expires = Instant.ofEpochSecond(Long.parseLong(parts[4]));
    if (!expires.plus(grace).isAfter(now) || Duration.between(now, expires).compareTo(LONGEST) > 0) {
      throw new Refused(Reason.EXPIRED);
    }
    if (faults.oneTwice) {
      throw new Refused(Reason.MALFORMED);
    }
    return new FailureContext(parts[2], parts[3].equals("c"), expires, faults.byHash);
  }

  private static boolean isOfTheGrammar(String[] parts) {
    String version = parts[0];
    return version.length() == 1
        && version.charAt(0) >= '1'
        && version.charAt(0) <= '0' + Kind.LATEST
        && Words.isName(parts[1], Keys.MAX_ID)
        && Words.isName(parts[2], MAX_EXPERIMENT)
        && (parts[3].equals("t") || parts[3].equals("c"))
        && isExpiry(parts[4])
        && parts[6].length() == Keys.MAC_LENGTH
        && Words.isName(parts[6], Keys.MAC_LENGTH);
  }

  private static boolean isExpiry(String text) {
    return text.equals("0")
        || !text.isEmpty()
            && text.length() <= MAX_EXPIRY
            && text.charAt(0) != '0'
            && Words.isDigits(text);
  }
}
