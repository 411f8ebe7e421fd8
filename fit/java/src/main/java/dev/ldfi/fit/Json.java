package dev.ldfi.fit;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads JSON (RFC 8259), strictly, and writes its texts. Of what is read there are maps, lists, text, true, false, null;
 * of numbers whole ones are Long, all others Double. An extension brings no libraries, for it lives among those of others.
 */
public final class Json {
  private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?");
  private static final int LONGEST_WHOLE = 18; // digits of which a long holds any
  private static final int DEEPEST = 200;

  private final String text;
  private final Matcher number;
  private int at;
  private int depth;

  private Json(String text) {
    this.text = text;
    this.number = NUMBER.matcher(text);
  }

  /** Reads the whole text; throws {@link NotUnderstood} for what is none. */
  public static Object read(String text) {
    Json reader = new Json(text);
    Object whole = reader.value();
    reader.space();
    if (reader.at < text.length()) {
      throw reader.wrong();
    }
    return whole;
  }

  /** Writes text. */
  public static String quoted(String text) {
    StringBuilder written = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        written.append('\\').append(c);
      } else if (c < ' ') {
        written.append(String.format("\\u%04x", (int) c));
      } else {
        written.append(c);
      }
    }
    return written.append('"').toString();
  }

  private NotUnderstood wrong() {
    return new NotUnderstood("not JSON at character " + at);
  }

  private void space() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
  }

  private char next() {
    space();
    return at < text.length() ? text.charAt(at) : '\0';
  }

  private boolean takes(char sign) {
    if (next() != sign) {
      return false;
    }
    at++;
    return true;
  }

  private void expect(char sign) {
    if (!takes(sign)) {
      throw wrong();
    }
  }

  private Object value() {
    if (++depth > DEEPEST) {
      throw wrong();
    }
    Object value = any();
    depth--;
    return value;
  }

  private Object any() {
    switch (next()) {
      case '{':
        return object();
      case '[':
        return list();
      case '"':
        return string();
      case 't':
        return word("true", true);
      case 'f':
        return word("false", false);
      case 'n':
        return word("null", null);
      default:
        return number();
    }
  }

  private Object word(String word, Object value) {
    if (!text.startsWith(word, at)) {
      throw wrong();
    }
    at += word.length();
    return value;
  }

  private Object number() {
    if (!number.region(at, text.length()).lookingAt()) {
      throw wrong();
    }
    String said = number.group();
    at = number.end();
    boolean whole = number.group(1) == null && number.group(2) == null && said.length() <= LONGEST_WHOLE;
    return whole ? (Object) Long.valueOf(said) : (Object) Double.valueOf(said);
  }

  private List<Object> list() {
    List<Object> values = new ArrayList<>();
    expect('[');
    if (takes(']')) {
      return values;
    }
    do {
      values.add(value());
    } while (takes(','));
    expect(']');
    return values;
  }

  private Map<String, Object> object() {
    Map<String, Object> members = new LinkedHashMap<>();
    expect('{');
    if (takes('}')) {
      return members;
    }
    do {
      if (next() != '"') {
        throw wrong();
      }
      String name = string();
      expect(':');
      members.put(name, value());
    } while (takes(','));
    expect('}');
    return members;
  }

  private String string() {
    StringBuilder read = new StringBuilder();
    for (at++; at < text.length(); at++) {
      char c = text.charAt(at);
      if (c == '"') {
        at++;
        return read.toString();
      }
      if (c < ' ') {
        throw wrong();
      }
      read.append(c == '\\' ? escaped() : c);
    }
    throw wrong();
  }

  private char escaped() {
    at++;
    int which = at < text.length() ? "\"\\/bfnrtu".indexOf(text.charAt(at)) : -1;
    if (which < 0) {
      throw wrong();
    }
    if (which < 8) {
      return "\"\\/\b\f\n\r\t".charAt(which);
    }
    int code = 0;
    for (int i = 0; i < 4; i++) {
      at++;
      int digit = at < text.length() && text.charAt(at) < 0x80 ? Character.digit(text.charAt(at), 16) : -1;
      if (digit < 0) {
        throw wrong();
      }
      code = code << 4 | digit;
    }
    return (char) code;
  }
}
