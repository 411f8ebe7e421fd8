package dev.ldfi.fit.edge;

import dev.ldfi.fit.FailureContext;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A raw {@code baggage} header, taken apart: our entries, and all others as they were sent. An entry is ours by its
 * decoded name, as an SDK further in would see it (fit/baggage.py).
 */
public final class BaggageHeader {
  /** Characters. OpenTelemetry drops the whole of a longer header (W3C Baggage, section 3.3.2). */
  static final int MAX_LENGTH = 8192;

  /** The values of our entries, less their properties. */
  final List<String> values = new ArrayList<>();

  /** The header without them. */
  final String others;

  BaggageHeader(String header) {
    List<String> kept = new ArrayList<>();
    for (String member : header.split(",", -1)) {
      String named = before(member, ';');
      if (isOurs(before(named, '='))) {
        values.add(Text.trimmed(named.substring(named.indexOf('=') + 1)));
      } else {
        kept.add(member);
      }
    }
    others = String.join(",", kept);
  }

  private static String before(String text, char end) {
    int at = text.indexOf(end);
    return at < 0 ? text : text.substring(0, at);
  }

  /** Whether an entry of this name, as it was sent, is one of ours. */
  public static boolean isOurs(String name) {
    String decoded = Text.trimmed(Text.unquoted(name.replace('+', ' ')));
    return decoded.toLowerCase(Locale.ROOT).equals(FailureContext.ENTRY);
  }

  /** Puts our entry in front of a header's others, where no limit on entries cuts it off. */
  static String with(String others, String value) {
    return FailureContext.ENTRY + "=" + value + (others.isEmpty() ? "" : "," + others);
  }
}
