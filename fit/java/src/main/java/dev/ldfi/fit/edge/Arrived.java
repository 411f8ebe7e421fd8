package dev.ldfi.fit.edge;

import dev.ldfi.fit.Points;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * A request as it arrives, and what is known of it then: its features, as fit/protocol/features.py reads them of one whose body
 * is not read. The names of headers are in small letters, and a header that came several times stands there so often.
 */
public final class Arrived {
  private static final int MAX_VALUE = 24; // characters
  private static final int MAX_PARAMETERS = 20;
  private static final int MAX_PATH = 2048; // characters that are looked at; whatever follows is a stranger's text
  private static final int MAX_QUERY = 8192;

  private final String method;
  private final String path;
  private final String query;
  private final List<Map.Entry<String, String>> headers;

  /** One that asks for this path, as it was sent. */
  public Arrived(String method, String path, String query, List<Map.Entry<String, String>> headers) {
    this.method = method;
    this.path = path;
    this.query = query;
    this.headers = headers;
  }

  /** All its features; wanted are those by headers, cookies and baggage. */
  Map<String, String> features(Set<String> wanted) {
    Map<String, String> found = new HashMap<>();
    found.put("method", method.toUpperCase(Locale.ROOT));
    found.put("path", Points.templatePath(Text.cut(path, MAX_PATH)));
    addQuery(found);
    addHeaders(found, wanted);
    return found;
  }

  /** Those that are wanted of headers, cookies and entries of the baggage. */
  Map<String, String> chosen(Set<String> wanted) {
    Map<String, String> found = new TreeMap<>();
    addHeaders(found, wanted);
    found.keySet().retainAll(wanted);
    return found;
  }

  private void addQuery(Map<String, String> found) {
    Map<String, List<String>> named = new HashMap<>();
    int left = MAX_PARAMETERS;
    for (String part : Text.cut(query, MAX_QUERY).replace('+', ' ').split("&")) {
      if (part.isEmpty()) {
        continue;
      }
      if (left-- == 0) {
        break;
      }
      String[] pair = part.split("=", 2);
      named
          .computeIfAbsent(Text.unquoted(pair[0]), it -> new ArrayList<>())
          .add(pair.length < 2 ? "" : Text.unquoted(pair[1]));
    }
    addAsked(found, named);
    List<String> said = said(found.getOrDefault("protocol", ""));
    Map<String, TreeSet<String>> values = new HashMap<>();
    named.forEach(
        (name, each) -> {
          if (!said.contains(name)) {
            TreeSet<String> together = values.computeIfAbsent("query." + Text.value(name), it -> new TreeSet<>());
            each.forEach(value -> together.add(Text.value(value)));
          }
        });
    values.forEach((parameter, each) -> found.put(parameter, Text.together(each)));
  }

  /** Parameters whose values say nothing beyond what was read in them. */
  private static List<String> said(String protocol) {
    switch (protocol) {
      case "falcor":
        return Arrays.asList("path", "paths");
      case "graphql":
        return Arrays.asList("query", "operationName", "variables", "extensions");
      default:
        return Collections.emptyList();
    }
  }

  /** Reads what a query asks for where its path does not say, of Falcor and GraphQL. */
  private static void addAsked(Map<String, String> found, Map<String, List<String>> named) {
    List<String> paths = new ArrayList<>(named.getOrDefault("path", Collections.emptyList()));
    paths.addAll(named.getOrDefault("paths", Collections.emptyList()));
    if (paths.stream().anyMatch(Falcor::beginsList)) {
      Falcor.add(found, paths);
      return;
    }
    String text = GraphQl.isDocument(first(named, "query")) ? first(named, "query") : "";
    String extensions = first(named, "extensions");
    if (!text.isEmpty() || named.containsKey("operationName") || extensions.contains("persistedQuery")) {
      GraphQl.add(found, text, first(named, "operationName"), extensions);
    }
  }

  private static String first(Map<String, List<String>> named, String name) {
    return named.containsKey(name) ? named.get(name).get(0) : "";
  }

  private void addHeaders(Map<String, String> found, Set<String> wanted) {
    for (Map.Entry<String, String> header : headers) {
      String name = header.getKey();
      String value = header.getValue();
      if (wanted.contains("header." + name)) {
        found.put("header." + name, Text.cut(value, MAX_VALUE));
      }
      switch (name) {
        case "user-agent":
          found.put("device", DeviceType.of(value));
          break;
        case "x-apollo-operation-name":
          found.put("protocol", "graphql");
          found.put("graphql.operation", Text.word(value));
          break;
        case "cookie":
          addEntries(found, "cookie.", value.split(";"), wanted);
          break;
        case "baggage":
          addEntries(found, "baggage.", value.split(","), wanted);
          break;
        case "content-type":
          if (value.contains("json") && !Arrays.asList("GET", "HEAD").contains(found.get("method"))) {
            found.put("unread", "body");
          }
          break;
        default:
      }
    }
  }

  private static void addEntries(Map<String, String> found, String kind, String[] entries, Set<String> wanted) {
    for (String entry : entries) {
      String[] pair = entry.split(";", 2)[0].split("=", 2);
      String feature = kind + Text.trimmed(pair[0]);
      if (wanted.contains(feature)) {
        found.put(feature, pair.length < 2 ? "" : Text.value(Text.unquoted(Text.trimmed(pair[1]))));
      }
    }
  }
}
