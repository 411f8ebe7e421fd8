package dev.ldfi.fit.edge;

import dev.ldfi.fit.Kind;
import dev.ldfi.fit.NotUnderstood;
import java.util.Arrays;
import java.util.function.DoubleUnaryOperator;
import java.util.regex.Pattern;

/**
 * How a rule has a point fail: "status:503:2@api>http:GET:ratings/" fails its first two calls in a request; with a
 * first of 0 all of them fail.
 */
final class PlannedFault {
  private static final int LONGEST = 80; // characters of what is shown of a text
  private static final Pattern FIRST = Pattern.compile("[1-9][0-9]?");

  final String point;

  /** Of "delay:" and "slow:" with the length, or the lengths that are drawn. */
  final String kind;

  final int first;

  /** Null where the kind says none. */
  final DoubleUnaryOperator lengths;

  private PlannedFault(String point, String kind, int first, DoubleUnaryOperator lengths) {
    this.point = point;
    this.kind = kind;
    this.first = first;
    this.lengths = lengths;
  }

  /** Reads one; throws {@link NotUnderstood} for what is none. */
  static PlannedFault parse(String text) {
    int at = text.indexOf('@');
    if (at >= 0 && at < text.length() - 1) {
      String[] parts = text.substring(0, at).split(":", -1);
      for (int kept = Math.min(2, parts.length); kept > 0; kept--) { // no kind with an argument is one without
        PlannedFault read = of(parts, kept, text.substring(at + 1));
        if (read != null) {
          return read;
        }
      }
    }
    String said = text.substring(0, Math.min(text.length(), LONGEST));
    throw new NotUnderstood(said + " is not a fault; write KIND@POINT, such as error@api>http:GET:ratings/");
  }

  private static PlannedFault of(String[] parts, int kept, String point) {
    String kind = String.join(":", Arrays.copyOf(parts, kept));
    int first = parts.length == kept ? 0 : first(parts, kept);
    if (first < 0) {
      return null;
    }
    Kind known = Kind.of(kind);
    if (known == null || !known.outlasted || kept == 1) {
      return Kind.is(kind) ? new PlannedFault(point, kind, first, null) : null;
    }
    DoubleUnaryOperator lengths = Lengths.of(parts[1]);
    boolean has = lengths != null && (!known.standsAlone() || parts[1].contains(".."));
    return has ? new PlannedFault(point, kind, first, lengths) : null;
  }

  private static int first(String[] parts, int kept) {
    boolean counts = parts.length == kept + 1 && FIRST.matcher(parts[kept]).matches();
    return counts ? Integer.parseInt(parts[kept]) : -1;
  }

  /** How long it may take: longest, or less where its kind says so, by the lot. Milliseconds. */
  long milliseconds(long longest, String lot) {
    if (lengths == null) {
      return longest;
    }
    double drawn = Math.rint(1000 * lengths.applyAsDouble(Lengths.shareOf(lot + "\n" + point)));
    return Math.min(Math.max(1, (long) drawn), longest);
  }

  String word() {
    return Kind.word(kind);
  }

  boolean isLate() {
    return Kind.of(kind).late;
  }

  /** The first version of failure contexts that can say it. */
  int version() {
    return Kind.of(kind).version;
  }

  /**
   * Ranks it among those of one point: a delay may be outlasted, one that says a length is shorter, a timeout comes
   * late, "error" says the least of how it looks and so is what is kept.
   */
  int strength() {
    if (lengths != null) {
      return 0;
    }
    Kind known = Kind.of(kind);
    if (known.late) {
      return known.outlasted ? 1 : 2;
    }
    return kind.equals("error") ? 4 : 3;
  }
}
