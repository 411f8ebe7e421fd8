package dev.ldfi.fit.edge;

import dev.ldfi.fit.Json;
import dev.ldfi.fit.NotUnderstood;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;

/** Reads the control plane's answer, all or nothing: throws {@link NotUnderstood} where any part is not. */
final class Rules {
  /** Seconds that injection may outlive the control plane; a longer lease is cut to it. */
  static final double MAX_LEASE = 60;
  private static final double MAX_PATIENCE = 120;

  private static final int MAX_VERSION = 64; // characters
  private static final long MAX_DELAY = 9_999_999; // milliseconds
  private static final Pattern EXPERIMENT = Pattern.compile("[A-Za-z0-9_-]{1,64}");

  private Rules() {}

  static Lease read(String text) {
    Map<String, Object> said = object(Json.read(text));
    List<Rule> rules = each(said.get("rules"), Rules::rule);
    double seconds = number(said.get("lease_seconds"), Double.MAX_VALUE);
    String version = as(String.class, said.get("version"));
    if (version.codePointCount(0, version.length()) > MAX_VERSION) {
      throw new NotUnderstood("a version of " + version.length() + " characters");
    }
    Set<String> known = new HashSet<>();
    Set<String> wanted = new HashSet<>();
    for (Rule rule : rules) {
      if (!known.add(rule.experiment)) {
        throw new NotUnderstood("two are of experiment " + rule.experiment);
      }
      rule.predicate.forEach(condition -> wanted.add(condition.feature));
    }
    boolean asks = said.get("asks") != null && as(Boolean.class, said.get("asks"));
    return new Lease(version, Math.min(seconds, MAX_LEASE), asks, rules, wanted);
  }

  private static Rule rule(Object of) {
    Map<String, Object> said = object(of);
    String experiment = as(String.class, said.get("experiment"));
    if (!EXPERIMENT.matcher(experiment).matches()) {
      throw new NotUnderstood("experiment");
    }
    Object yieldsTo = said.get("yields_to");
    return new Rule(
        experiment,
        as(String.class, said.get("salt")),
        claim(said),
        yieldsTo == null ? Collections.emptyList() : each(yieldsTo, Rules::claim),
        predicate(said.get("predicate")),
        each(said.get("faults"), fault -> PlannedFault.parse(as(String.class, fault))),
        count(said.get("delay_ms"), MAX_DELAY),
        said.get("members") == null ? null : (Long) count(said.get("members"), Long.MAX_VALUE),
        said.get("patience") == null ? 0 : number(said.get("patience"), MAX_PATIENCE));
  }

  private static Claim claim(Object of) {
    Map<String, Object> said = object(of);
    double treatment = number(said.get("treatment"), 1);
    double control = number(said.get("control"), 1);
    if (treatment + control > 1 + 1e-9) {
      throw new NotUnderstood("shares of more than all devices");
    }
    return new Claim(as(String.class, said.get("salt")), treatment, control);
  }

  private static List<Condition> predicate(Object of) {
    List<Condition> read = each(of, Rules::condition);
    read.removeIf(Condition::guards);
    return read;
  }

  static Condition condition(Object of) {
    Map<String, Object> said = object(of);
    if (!said.containsKey("value")) {
      throw new NotUnderstood("predicate");
    }
    Object value = said.get("value");
    return new Condition(
        as(String.class, said.get("feature")),
        value == null ? null : as(String.class, value),
        as(Boolean.class, said.get("negated")));
  }

  private static <T> List<T> each(Object of, Function<Object, T> read) {
    List<T> found = new ArrayList<>();
    for (Object each : as(List.class, of)) {
      found.add(read.apply(each));
    }
    return found;
  }

  @SuppressWarnings("unchecked") // so Json makes them
  static Map<String, Object> object(Object of) {
    return as(Map.class, of);
  }

  static double number(Object of, double largest) {
    double number = as(Number.class, of).doubleValue();
    if (!(number >= 0 && number <= largest)) {
      throw new NotUnderstood(number + " is not a number from 0 to " + largest);
    }
    return number;
  }

  private static long count(Object of, long largest) {
    long count = as(Long.class, of);
    if (count < 0 || count > largest) {
      throw new NotUnderstood(count + " is not a count from 0 to " + largest);
    }
    return count;
  }

  static <T> T as(Class<T> type, Object value) {
    if (!type.isInstance(value)) {
      throw new NotUnderstood("not a " + type.getSimpleName());
    }
    return type.cast(value);
  }
}
