package dev.ldfi.fit.edge;

import dev.ldfi.fit.Points;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** What a stranger has sent, brought into bounds. Characters are those of Unicode. */
final class Text {
  private static final int MAX_VALUE = 24; // characters
  private static final int MAX_WORD = 40;

  private Text() {}

  /** The first characters. */
  static String cut(String text, int longest) {
    boolean fits = text.codePointCount(0, text.length()) <= longest;
    return fits ? text : text.substring(0, text.offsetByCodePoints(0, longest));
  }

  /** The text less what any SDK takes for white space around it. */
  static String trimmed(String text) {
    int from = 0;
    int to = text.length();
    while (from < to && isSpace(text.charAt(from))) {
      from++;
    }
    while (from < to && isSpace(text.charAt(to - 1))) {
      to--;
    }
    return text.substring(from, to);
  }

  private static boolean isSpace(char c) {
    return Character.isWhitespace(c) || Character.isSpaceChar(c) || c == 0x85;
  }

  /** A value; "*" for one that is long or looks like an identifier. */
  static String value(String text) {
    return isLonger(text, MAX_VALUE) || isIdentifier(text) ? "*" : text;
  }

  /** A word; "*" for any other. */
  static String word(String text) {
    return isLonger(text, MAX_WORD) || isIdentifier(text) ? "*" : text;
  }

  private static boolean isLonger(String text, int longest) {
    return text.codePointCount(0, text.length()) > longest;
  }

  private static boolean isIdentifier(String text) {
    return Points.templatePath("/" + text.replace("/", "%2F")).equals("/*");
  }

  /** Several values of one parameter as one. */
  static String together(Iterable<String> values) {
    String joined = String.join(",", values);
    return isLonger(joined, MAX_VALUE) ? "*" : joined;
  }

  /**
   * Takes percent-encoding off as Python does: of what is broken it keeps what it can, and what is no UTF-8 becomes
   * U+FFFD.
   */
  static String unquoted(String text) {
    if (text.indexOf('%') < 0) {
      return text;
    }
    StringBuilder whole = new StringBuilder();
    ByteBuffer bytes = ByteBuffer.allocate(text.length());
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      int code = c == '%' ? code(text, i + 1) : -1;
      if (c >= 0x80) {
        flush(bytes, whole);
        whole.append(c);
      } else if (code >= 0) {
        bytes.put((byte) code);
        i += 2;
      } else {
        bytes.put((byte) c);
      }
    }
    flush(bytes, whole);
    return whole.toString();
  }

  private static int code(String text, int at) {
    if (at + 2 > text.length() || text.charAt(at) > 0x7f || text.charAt(at + 1) > 0x7f) {
      return -1;
    }
    int high = Character.digit(text.charAt(at), 16);
    int low = Character.digit(text.charAt(at + 1), 16);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
  }

  private static void flush(ByteBuffer bytes, StringBuilder into) {
    into.append(new String(bytes.array(), 0, bytes.position(), StandardCharsets.UTF_8));
    bytes.clear();
  }
}
