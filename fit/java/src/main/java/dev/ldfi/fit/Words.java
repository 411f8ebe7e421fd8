package dev.ldfi.fit;

import java.util.OptionalInt;

/** Small words and numbers of the grammar. All of it is ASCII. */
final class Words {
  private Words() {}

  /** Whether text is 1 to longest characters of A-Z a-z 0-9 _ -. */
  static boolean isName(String text, int longest) {
    if (text.isEmpty() || text.length() > longest) {
      return false;
    }
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (!(isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '-')) {
        return false;
      }
    }
    return true;
  }

  static boolean isDigits(String text) {
    for (int i = 0; i < text.length(); i++) {
      if (!isDigit(text.charAt(i))) {
        return false;
      }
    }
    return true;
  }

  static boolean isDigit(char c) {
    return '0' <= c && c <= '9';
  }

  /** Reads a number without a leading zero, of at most so many digits; empty where it is none. */
  static OptionalInt positive(String text, int digits) {
    boolean is = !text.isEmpty() && text.length() <= digits && text.charAt(0) != '0' && isDigits(text);
    return is ? OptionalInt.of(Integer.parseInt(text)) : OptionalInt.empty();
  }
}
