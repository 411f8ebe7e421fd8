package dev.ldfi.fit;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalInt;

/** Reads the list of faults in a failure context, in the notation of its version. */
final class Notation {
  static final int HASH_LENGTH = 8;
  private static final int MAX_LENGTH_DIGITS = 7; // of milliseconds
  private static final int MAX_COUNT_DIGITS = 2;

  /** What was read; one point's second fault is found only when the signature has been looked at. */
  final Map<String, Injection> byHash = new LinkedHashMap<>();

  boolean oneTwice;
  private final char version;

  private Notation(char version) {
    this.version = version;
  }

  /** The faults by the hash of their points; null where the list is not of the grammar. */
  static Notation read(char version, String listed) {
    Notation read = new Notation(version);
    if (listed.isEmpty()) {
      return read;
    }
    String[] parts = listed.split("~", -1);
    return (version == '1' ? read.ungrouped(parts) : read.grouped(parts)) ? read : null;
  }

  private boolean ungrouped(String[] parts) {
    for (String part : parts) {
      if (part.length() < 1 + HASH_LENGTH || !Words.isName(part.substring(1, 1 + HASH_LENGTH), HASH_LENGTH)) {
        return false;
      }
      Injection injection = ungrouped(part.charAt(0), part.substring(1 + HASH_LENGTH));
      if (injection == null) {
        return false;
      }
      put(part.substring(1, 1 + HASH_LENGTH), injection);
    }
    return true;
  }

  /** Reads what follows the hash: "", "1500", "n2", "1500n2". */
  private static Injection ungrouped(char letter, String suffix) {
    int at = suffix.indexOf('n');
    String length = at < 0 ? suffix : suffix.substring(0, at);
    String count = at < 0 ? null : suffix.substring(at + 1);
    if (letter == 'e') {
      return length.isEmpty() ? injection("error", "", count) : null;
    }
    return letter == 'd' && !length.isEmpty() ? injection("delay", length, count) : null;
  }

  private boolean grouped(String[] parts) {
    if (parts.length % 2 != 0) {
      return false;
    }
    for (int i = 0; i < parts.length; i += 2) {
      Injection injection = grouped(parts[i]);
      String hashes = parts[i + 1];
      if (injection == null
          || hashes.length() % HASH_LENGTH != 0
          || !Words.isName(hashes, FailureContext.MAX_LENGTH)) {
        return false;
      }
      for (int at = 0; at < hashes.length(); at += HASH_LENGTH) {
        put(hashes.substring(at, at + HASH_LENGTH), injection);
      }
    }
    return true;
  }

  /** Reads how a group of points fails, as in "status-503-n2". */
  private Injection grouped(String how) {
    String[] parts = how.split("-", -1);
    String kind = parts[0];
    String length = "";
    int read = 1;
    Kind known = Kind.of(kind);
    if (known == null || known.version > version - '0') {
      return null;
    }
    if (known.late) {
      if (parts.length < 2 || parts[1].isEmpty()) {
        return null;
      }
      length = parts[1];
      read = 2;
    } else if (!known.standsAlone()) {
      if (parts.length < 2 || !known.takes(parts[1])) {
        return null;
      }
      kind = kind + ":" + parts[1];
      read = 2;
    }
    String[] rest = Arrays.copyOfRange(parts, read, parts.length);
    if (rest.length == 0) {
      return injection(kind, length, null);
    }
    return rest.length == 1 && rest[0].startsWith("n") ? injection(kind, length, rest[0].substring(1)) : null;
  }

  private static Injection injection(String kind, String length, String count) {
    OptionalInt longest = length.isEmpty() ? OptionalInt.of(0) : Words.positive(length, MAX_LENGTH_DIGITS);
    OptionalInt first = count == null ? OptionalInt.of(0) : Words.positive(count, MAX_COUNT_DIGITS);
    if (!longest.isPresent() || !first.isPresent()) {
      return null;
    }
    return new Injection(kind, longest.getAsInt(), first.getAsInt());
  }

  private void put(String hash, Injection injection) {
    oneTwice |= byHash.put(hash, injection) != null;
  }
}
