package dev.ldfi.fit.edge;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Is met by requests that have a feature, with this value or (null) any; or, negated, that have not. All conditions of
 * a rule together are what a request class is to an edge.
 */
final class Condition {
  private static final Set<String> KNOWN =
      new HashSet<>(
          Arrays.asList(
              "operation method path query header route device cookie baggage".split(" ")));
  private static final Set<String> HIDDEN =
      new HashSet<>(Arrays.asList("protocol", "falcor", "graphql", "jsonrpc"));

  final String feature;
  private final String value;
  private final boolean negated;

  Condition(String feature, String value, boolean negated) {
    this.feature = feature;
    this.value = value;
    this.negated = negated;
  }

  /** Whether it stands beside others that an older edge would wrongly hold for met. We are none, and leave it out. */
  boolean guards() {
    return feature.equals("features") && "2".equals(value) && !negated;
  }

  boolean holds(Map<String, String> of) {
    return negated ? !matches(of) && mayBeDenied(of) : matches(of);
  }

  private boolean matches(Map<String, String> of) {
    if (feature.equals("route")) {
      return value != null && fits(value, of.getOrDefault("path", ""));
    }
    String found = of.get(feature);
    return found != null && (value == null || value.equals(found));
  }

  /** Whether a path fits a template: "*" there stands for any one segment. */
  private static boolean fits(String template, String path) {
    String[] wanted = template.split("/", -1);
    String[] given = path.split("/", -1);
    if (wanted.length != given.length) {
      return false;
    }
    for (int i = 0; i < wanted.length; i++) {
      boolean any = wanted[i].equals("*") && !given[i].isEmpty();
      if (!any && !wanted[i].equals(given[i])) {
        return false;
      }
    }
    return true;
  }

  /**
   * Whether it is known that a request does not have the feature. What a version does not know never holds, negated or
   * not; of some what was not read may tell more.
   */
  private boolean mayBeDenied(Map<String, String> of) {
    String family = feature.split("\\.", 2)[0];
    return KNOWN.contains(family) || HIDDEN.contains(family) && !of.containsKey("unread");
  }
}
