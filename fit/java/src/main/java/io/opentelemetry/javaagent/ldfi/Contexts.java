package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Refused;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** The contexts that were verified, remembered within bounds; the expiry is looked at every time. */
final class Contexts {
  private static final int REMEMBERED = 1024;

  /** How long a context that has run out is still told from none: its request goes on. */
  private static final Duration GRACE = Duration.ofMinutes(5);

  private final Keys keys;
  private final Map<String, Optional<FailureContext>> verified = new ConcurrentHashMap<>();

  Contexts(Keys keys) {
    this.keys = keys;
  }

  /** The context to be obeyed now; null where there is none. */
  FailureContext at(String value, Instant now) {
    FailureContext found = recognized(value, now);
    return found != null && found.expires.isAfter(now) ? found : null;
  }

  /** The same for one that has run out within {@link #GRACE}: nothing may be injected by that. */
  FailureContext recognized(String value, Instant now) {
    if (value.length() > FailureContext.MAX_LENGTH) {
      return null;
    }
    Optional<FailureContext> found = verified.get(value);
    if (found == null) {
      found = read(value, now);
      if (verified.size() >= REMEMBERED) {
        verified.clear();
      }
      verified.put(value, found);
    }
    return found.filter(context -> context.expires.plus(GRACE).isAfter(now)).orElse(null);
  }

  private Optional<FailureContext> read(String value, Instant now) {
    try {
      return Optional.of(FailureContext.read(keys, value, now, GRACE));
    } catch (Refused refused) {
      return Optional.empty();
    }
  }
}
