package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Refused;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** The contexts that were verified, remembered within bounds; the expiry is looked at every time. */
final class Contexts {
  private static final int REMEMBERED = 1024;

  private final Keys keys;
  private final Map<String, Optional<FailureContext>> verified = new ConcurrentHashMap<>();

  Contexts(Keys keys) {
    this.keys = keys;
  }

  /** The context to be obeyed now; null where there is none. */
  FailureContext at(String value, Instant now) {
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
    return found.filter(context -> context.expires.isAfter(now)).orElse(null);
  }

  private Optional<FailureContext> read(String value, Instant now) {
    try {
      return Optional.of(FailureContext.read(keys, value, now));
    } catch (Refused refused) {
      return Optional.empty();
    }
  }
}
