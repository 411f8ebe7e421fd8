package dev.ldfi.fit.edge;

import dev.ldfi.fit.Json;
import dev.ldfi.fit.NotUnderstood;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What a query in GraphQL asks for: by its operation's name, or its hash, or its type and its top-level fields. */
final class GraphQl {
  private static final int MAX_HASH = 12;
  private static final int MAX_FIELDS = 16;
  private static final int MAX_DOCUMENT = 8192; // characters
  private static final List<String> TYPES = Arrays.asList("query", "mutation", "subscription");
  private static final Pattern NAME = Pattern.compile("[_A-Za-z][_0-9A-Za-z]*");

  /** Loops are possessive, for Java follows others by recursion, as deep as the text is long. */
  private static final Pattern TOKEN =
      Pattern.compile(
          String.join(
              "|",
              "#[^\\n]*+",
              "\"\"\"(?:[^\"\\\\]|\\\\[^\\n]|\"\"?[^\"\\\\]|\"\"?\\\\[^\\n])*+\"\"\"",
              "\"(?:[^\"\\\\\\n]|\\\\[^\\n])*+\"",
              "\\.\\.\\.",
              "[_A-Za-z][_0-9A-Za-z]*+",
              "[{}()\\[\\]:@$!=|&]"));

  private GraphQl() {}

  /** Whether a text begins as a document does: "query=flights" is none. */
  static boolean isDocument(String text) {
    String begins = Text.trimmed(text);
    if (begins.startsWith("{") || begins.startsWith("#")) {
      return true;
    }
    List<String> words = new ArrayList<>(TYPES);
    words.add("fragment");
    for (String word : words) {
      if (begins.startsWith(word)) {
        int next = begins.length() == word.length() ? ' ' : begins.codePointAt(word.length());
        return next != '_' && !DeviceType.isLetterOrNumber(next);
      }
    }
    return false;
  }

  /** Adds what is asked for; text is empty for no document. */
  static void add(Map<String, String> features, String text, String operation, String extensions) {
    features.put("protocol", "graphql");
    List<String> signs = signs(text);
    int begins = beginning(signs);
    String type = begins == signs.size() ? "" : signs.get(begins).equals("{") ? "query" : signs.get(begins);
    String name = operation.isEmpty() ? nameBehind(signs, begins) : operation;
    String persisted = persistedBy(extensions);
    if (!name.isEmpty()) {
      features.put("graphql.operation", Text.word(name));
    } else if (!persisted.isEmpty()) {
      features.put("graphql.hash", persisted);
    } else if (!type.isEmpty()) {
      features.put("graphql.type", type);
      topLevel(signs.subList(begins, signs.size())).stream()
          .limit(MAX_FIELDS)
          .forEach(field -> features.put("graphql.field." + field, ""));
    }
  }

  private static String persistedBy(String extensions) {
    Object said;
    try {
      said = Json.read(extensions);
    } catch (NotUnderstood unread) {
      return "";
    }
    Object hash = member(member(said, "persistedQuery"), "sha256Hash");
    boolean isHash = hash instanceof String && ((String) hash).codePoints().allMatch(DeviceType::isLetterOrNumber);
    return isHash ? Text.cut((String) hash, MAX_HASH) : "";
  }

  private static Object member(Object of, String name) {
    return of instanceof Map ? ((Map<?, ?>) of).get(name) : null;
  }

  private static List<String> signs(String text) {
    List<String> signs = new ArrayList<>();
    Matcher found = TOKEN.matcher(Text.cut(text, MAX_DOCUMENT));
    while (found.find()) {
      if ("#\"".indexOf(found.group().charAt(0)) < 0) {
        signs.add(found.group());
      }
    }
    return signs;
  }

  /** Where the first operation begins, past fragments that stand before it. */
  private static int beginning(List<String> signs) {
    int at = 0;
    while (at < signs.size() && !signs.get(at).equals("{") && !TYPES.contains(signs.get(at))) {
      at = behindBlock(signs, at);
    }
    return at;
  }

  private static int behindBlock(List<String> signs, int from) {
    int depth = 0;
    for (int at = from; at < signs.size(); at++) {
      depth += step(signs.get(at), "{", "}");
      if (depth == 0 && signs.get(at).equals("}")) {
        return at + 1;
      }
    }
    return signs.size();
  }

  private static String nameBehind(List<String> signs, int begins) {
    boolean has = begins + 1 < signs.size() && !signs.get(begins).equals("{");
    return has && NAME.matcher(signs.get(begins + 1)).matches() ? signs.get(begins + 1) : "";
  }

  private static int step(String sign, String opening, String closing) {
    return opening.contains(sign) ? 1 : closing.contains(sign) ? -1 : 0;
  }

  /** The fields right inside an operation: by their names, not by their aliases. */
  private static TreeSet<String> topLevel(List<String> signs) {
    TreeSet<String> fields = new TreeSet<>();
    int braces = 0;
    int others = 0;
    for (int i = 0; i < signs.size(); i++) {
      String sign = signs.get(i);
      braces += step(sign, "{", "}");
      others += step(sign, "([", ")]");
      if (braces == 1 && others == 0 && i > 0 && isField(signs, i)) {
        fields.add(sign);
      }
      if (braces == 0 && sign.equals("}")) {
        break;
      }
    }
    return fields;
  }

  private static boolean isField(List<String> signs, int at) {
    boolean isAlias = at + 1 < signs.size() && signs.get(at + 1).equals(":");
    return !isAlias
        && NAME.matcher(signs.get(at)).matches()
        && !Arrays.asList("@", "...", "$", "on").contains(signs.get(at - 1));
  }
}
