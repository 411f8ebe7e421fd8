package dev.ldfi.fit.edge;

import dev.ldfi.fit.Json;
import dev.ldfi.fit.NotUnderstood;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/** What is asked of a Falcor model: each prefix of each path is a feature, "falcor.videos.*.title". */
final class Falcor {
  private static final int MAX_PATHS = 50;
  private static final int MAX_PREFIXES = 32;
  private static final int DEEPEST = 5; // keys of a path that are looked at

  private Falcor() {}

  static boolean beginsList(String text) {
    return Text.trimmed(text).startsWith("[");
  }

  /** Adds what the values of the parameters "path" and "paths" ask for. */
  static void add(Map<String, String> features, List<String> values) {
    Map<String, String> found = new TreeMap<>();
    int left = MAX_PATHS;
    for (String value : values) {
      List<?> paths;
      try {
        paths = pathsOf(Json.read(value));
      } catch (NotUnderstood cut) {
        paths = Collections.emptyList();
        if (beginsList(value)) {
          found.put("unread", "query");
        }
      }
      for (Object path : paths.subList(0, Math.min(left, paths.size()))) {
        if (path instanceof List) {
          addPrefixes(found, (List<?>) path);
        }
      }
      left -= Math.min(left, paths.size());
    }
    if (found.isEmpty()) {
      return;
    }
    features.put("protocol", "falcor");
    found.entrySet().stream().limit(MAX_PREFIXES).forEach(each -> features.put(each.getKey(), each.getValue()));
  }

  /** The paths of a list of them, or the one that was given. */
  private static List<?> pathsOf(Object whole) {
    boolean isList = whole instanceof List && ((List<?>) whole).stream().allMatch(each -> each instanceof List);
    return isList ? (List<?>) whole : Collections.singletonList(whole);
  }

  /** Adds the prefixes of a path that end in a word; a set of keys makes one for each. */
  private static void addPrefixes(Map<String, String> found, List<?> path) {
    List<String> prefixes = Collections.singletonList("falcor");
    for (Object keys : path.subList(0, Math.min(DEEPEST, path.size()))) {
      boolean several = keys instanceof List;
      TreeSet<String> named = new TreeSet<>();
      for (Object each : several ? (List<?>) keys : Collections.singletonList(keys)) {
        named.add(keyOf(each));
      }
      prefixes = extended(prefixes, named);
      for (String each : prefixes) {
        if (several ? !each.endsWith("*") : !named.first().equals("*")) {
          found.put(each, "");
        }
      }
    }
  }

  private static List<String> extended(List<String> prefixes, Iterable<String> keys) {
    List<String> longer = new ArrayList<>();
    for (String prefix : prefixes) {
      for (String key : keys) {
        if (longer.size() < MAX_PREFIXES) {
          longer.add(prefix + "." + key);
        }
      }
    }
    return longer;
  }

  /** A key that is a word; ids, ranges and numbers are "*". */
  private static String keyOf(Object key) {
    boolean isWord = key instanceof String && !((String) key).isEmpty();
    return isWord ? Text.word((String) key).replace('.', '_') : "*";
  }
}
