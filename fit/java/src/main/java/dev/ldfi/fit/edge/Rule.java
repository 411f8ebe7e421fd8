package dev.ldfi.fit.edge;

import java.util.List;
import java.util.Map;

/** One armed experiment. */
final class Rule {
  final String experiment;
  final String salt;
  final List<PlannedFault> faults;

  /** The longest that a call may hang, in milliseconds. */
  final long delay;

  /** How many distinct devices this edge may treat, in all; null is no limit. */
  final Long members;

  /** A length is drawn anew for each request. */
  final boolean draws;

  final List<Condition> predicate;

  /** For how many milliseconds a context holds at least. */
  final long patience;

  private final Claim claim;
  private final List<Claim> yieldsTo;

  Rule(
      String experiment,
      String salt,
      Claim claim,
      List<Claim> yieldsTo,
      List<Condition> predicate,
      List<PlannedFault> faults,
      long delay,
      Long members,
      double patience) {
    this.experiment = experiment;
    this.salt = salt;
    this.claim = claim;
    this.yieldsTo = yieldsTo;
    this.predicate = predicate;
    this.faults = faults;
    this.delay = delay;
    this.members = members;
    this.patience = (long) (patience * 1000);
    this.draws = faults.stream().anyMatch(fault -> fault.lengths != null);
  }

  /** The arm in which a device falls, and which those that the rule yields to leave it; null for none. */
  Arm armOf(long mark) {
    Arm arm = claim.armOf(mark);
    return arm != null && keeps(mark, arm) ? arm : null;
  }

  private boolean keeps(long mark, Arm arm) {
    for (Claim each : yieldsTo) {
      Arm theirs = each.armOf(mark);
      if (theirs == Arm.TREATMENT || theirs == Arm.CONTROL && arm == Arm.TREATMENT) {
        return false;
      }
    }
    return true;
  }

  /** Whether a request is of its class. */
  boolean isOf(Map<String, String> features) {
    for (Condition each : predicate) {
      if (!each.holds(features)) {
        return false;
      }
    }
    return true;
  }
}
