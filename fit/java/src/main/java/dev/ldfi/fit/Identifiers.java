package dev.ldfi.fit;

import java.util.regex.Pattern;

/** Which words are identifiers. The rules are those of fit/protocol/identifiers.py, where they are explained. */
final class Identifiers {
  private static final int LONG = 40; // characters above which a word with a digit is no word
  private static final Pattern FORMS =
      Pattern.compile(
          "[+-]?\\d[\\d.,:_+-]*" // 17, 3.14, 1-20, 2026-11-21
              + "|[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}" // uuid
              + "|(?=[0-9a-f]*\\d)[0-9a-f]{8,}" // hash
              + "|(?=[a-f]*\\d[a-f]*\\d)(?=\\d*[a-f])[0-9a-f]{7}" // short hash of git
              + "|[A-Z0-9]{26}" // ulid
              + "|[^@]+@[^@]+" // e-mail address
              + "|[A-Za-z]{0,8}[-_.]?\\d{3,}" // tt0111161, user-1234
              + "|(?=(?:[^0-9]*\\d){3})[\\w.=-]{16,}" // tokens
              + "|\\d{5,}[-_][^\n]+|[^\n]+[-_]\\d{5,}" // a number before words, or behind them
              + "|[^\n]+[-_][0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}");
  private static final Pattern QUALIFIED = Pattern.compile("[A-Za-z_]\\w*(?:\\.[A-Za-z_]\\w*)+");
  private static final Pattern VERSION = Pattern.compile("v\\d+");

  private Identifiers() {}

  /** Whether a word stands for one thing of many. */
  static boolean isIdentifier(String text) {
    if (!QUALIFIED.matcher(text).matches()) {
      return isWordOfOne(text);
    }
    for (String part : text.split("\\.", -1)) {
      if (!VERSION.matcher(part).matches() && isWordOfOne(part)) {
        return true;
      }
    }
    return false;
  }

  private static boolean isWordOfOne(String text) {
    return FORMS.matcher(text).matches()
        || text.codePointCount(0, text.length()) > LONG && digits(text) > 0
        || isDrawn(text)
        || endsInOne(text);
  }

  /** Whether words lead up to an identifier, as in a slug. */
  private static boolean endsInOne(String text) {
    int at = Math.max(text.lastIndexOf('-'), text.lastIndexOf('_'));
    String tail = text.substring(at + 1);
    return at > 0 && (isHash(tail) || isDrawn(tail));
  }

  private static boolean isHash(String text) {
    int digits = digits(text);
    return text.length() >= 7
        && digits >= 2
        && digits < text.length()
        && text.chars().allMatch(c -> c >= '0' && c <= '9' || c >= 'a' && c <= 'f');
  }

  private static int digits(String text) {
    return (int) text.chars().filter(c -> c >= '0' && c <= '9').count();
  }

  private enum Kind {
    DIGIT,
    SMALL,
    CAPITAL,
    MARK,
    OTHER;

    static Kind of(char c) {
      if (c >= '0' && c <= '9') {
        return DIGIT;
      }
      if (c >= 'a' && c <= 'z') {
        return SMALL;
      }
      if (c >= 'A' && c <= 'Z') {
        return CAPITAL;
      }
      return c == '-' || c == '_' ? MARK : OTHER;
    }

    boolean isLetter() {
      return this == SMALL || this == CAPITAL;
    }
  }

  /** Whether letters and digits look as if they were drawn by lot. */
  private static boolean isDrawn(String text) {
    int size = text.length();
    if (size < 8) {
      return false;
    }
    int[] counts = new int[Kind.values().length];
    int within = 0;
    int changes = 0;
    int run = 0;
    int longest = 0;
    Kind before = Kind.OTHER;
    for (int i = 0; i < size; i++) {
      Kind kind = Kind.of(text.charAt(i));
      if (kind == Kind.OTHER) {
        return false;
      }
      counts[kind.ordinal()]++;
      boolean behind = before == Kind.DIGIT && kind.isLetter();
      within += behind ? 1 : 0;
      boolean ahead = kind == Kind.DIGIT && before.isLetter();
      changes += behind || ahead || before == Kind.SMALL && kind == Kind.CAPITAL ? 1 : 0;
      run = kind == Kind.SMALL ? run + 1 : 0;
      longest = Math.max(longest, run);
      before = kind;
    }
    return looksDrawn(size, counts, within, changes, longest);
  }

  private static boolean looksDrawn(int size, int[] counts, int within, int changes, int longest) {
    boolean small = counts[Kind.SMALL.ordinal()] > 0;
    boolean capital = counts[Kind.CAPITAL.ordinal()] > 0;
    boolean marked = counts[Kind.MARK.ordinal()] > 0;
    if (within == 0 || marked && size < 16) {
      return false;
    }
    if (small && capital) {
      boolean mixed = within >= 2 || size >= 16 && 3 * changes >= size;
      return size >= 10 && mixed && longest < (size >= 16 ? 6 : 4);
    }
    if (marked) {
      return false;
    }
    if (capital) {
      return size >= 10 || within >= 2;
    }
    return within >= 2 && (size >= 10 && counts[Kind.DIGIT.ordinal()] >= 3 || size >= 20);
  }
}
