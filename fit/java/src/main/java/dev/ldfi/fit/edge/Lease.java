package dev.ldfi.fit.edge;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;

/** Rules, and how long they hold. */
final class Lease {
  static final Lease QUIET = new Lease("", 0, Collections.emptyList(), Collections.emptySet());

  final String version;
  final double seconds;
  final List<Rule> rules;

  /** Features that the rules ask for. */
  final Set<String> wanted;

  Lease(String version, double seconds, List<Rule> rules, Set<String> wanted) {
    this.version = version;
    this.seconds = seconds;
    this.rules = rules;
    this.wanted = wanted;
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
