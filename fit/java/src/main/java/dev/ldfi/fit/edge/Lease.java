package dev.ldfi.fit.edge;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Rules, and how long they hold. */
final class Lease {
  static final Lease QUIET = new Lease("", 0, false, Collections.emptyList(), Collections.emptySet());

  private static final Pattern COUNTED = Pattern.compile("(.*)-([0-9]{1,18})", Pattern.DOTALL);

  final String version;
  final double seconds;

  /** The control plane can be asked for one device more. */
  final boolean asks;

  final List<Rule> rules;

  /** Features that the rules ask for. */
  final Set<String> wanted;

  Lease(String version, double seconds, boolean asks, List<Rule> rules, Set<String> wanted) {
    this.version = version;
    this.seconds = seconds;
    this.asks = asks;
    this.rules = rules;
    this.wanted = wanted;
  }

  /** Whether devices may be treated without being asked for. */
  boolean allots() {
    return rules.stream().anyMatch(rule -> rule.members == null || rule.members > 0);
  }

  /** How many devices may be treated, by experiment; null is no limit. */
  Map<String, Long> members() {
    Map<String, Long> members = new LinkedHashMap<>();
    rules.forEach(rule -> members.put(rule.experiment, rule.members));
    return members;
  }

  /** Whether its rules are older than others, as far as that can be told. */
  boolean precedes(Lease other) {
    return epoch().equals(other.epoch()) && number() < other.number();
  }

  /** Which start of the service the version is of; versions are EPOCH-NUMBER. */
  String epoch() {
    Matcher counted = COUNTED.matcher(version);
    return counted.matches() ? counted.group(1) : version;
  }

  private long number() {
    Matcher counted = COUNTED.matcher(version);
    return counted.matches() ? Long.parseLong(counted.group(2)) : 0;
  }

  /** A device is in this arm of a rule's experiment, if its request is of the class. */
  static final class Claimed {
    final Rule rule;
    final Arm arm;

    Claimed(Rule rule, Arm arm) {
      this.rule = rule;
      this.arm = arm;
    }
  }

  /**
   * The rules that claim a device. There are several only where it is in control of all of them; where they do not
   * yield to each other as they should, the first one has it.
   */
  List<Claimed> claims(long mark) {
    List<Claimed> found = new ArrayList<>();
    for (Rule each : rules) {
      Arm arm = each.armOf(mark);
      if (arm == null || !found.isEmpty() && arm == Arm.TREATMENT) {
        continue;
      }
      found.add(new Claimed(each, arm));
      if (arm == Arm.TREATMENT) {
        break;
      }
    }
    return found;
  }
}
