package dev.ldfi.fit.edge;

import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import dev.ldfi.fit.Refused;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** What a failure context says, before it is signed. Lengths are drawn by the lot. */
final class Stamp {
  /** A reader refuses a point that is named twice, so one fault is kept of each; the strongest comes last here. */
  private static final Comparator<PlannedFault> STRENGTH =
      Comparator.comparingInt(PlannedFault::strength)
          .thenComparing(fault -> fault.kind)
          .thenComparing(fault -> fault.first == 0) // to hit all calls is stronger
          .thenComparingInt(fault -> fault.first);

  private final String experiment;
  private final Arm arm;
  private final long expires; // Unix seconds
  private final Collection<PlannedFault> faults;
  private final long longest; // milliseconds that a call may hang
  private final String lot;

  Stamp(String experiment, Arm arm, long expires, List<PlannedFault> faults, long longest, String lot) {
    this.experiment = experiment;
    this.arm = arm;
    this.expires = expires;
    this.faults = strongest(faults);
    this.longest = longest;
    this.lot = lot;
  }

  private static Collection<PlannedFault> strongest(List<PlannedFault> faults) {
    Map<String, PlannedFault> kept = new TreeMap<>();
    faults.stream().sorted(STRENGTH).forEach(fault -> kept.put(fault.point, fault));
    return kept.values();
  }

  /**
   * Writes it, character by character as fit/protocol/context.py does.
   *
   * @throws Refused for what would not be read back
   */
  String sign(Keys keys) throws Refused {
    String payload =
        String.join(
            ".", "" + version(), keys.ids().get(0), experiment, "" + arm.letter(), Long.toString(expires), listed());
    String value = payload + "." + keys.sign(payload);
    FailureContext.read(keys, value, Instant.ofEpochSecond(expires - 1));
    return value;
  }

  /** The first version that can say these faults. */
  private int version() {
    return faults.stream().mapToInt(PlannedFault::version).max().orElse(1);
  }

  private String listed() {
    if (version() == 1) {
      return faults.stream().map(this::single).collect(Collectors.joining("~"));
    }
    Map<String, StringBuilder> hashes = new LinkedHashMap<>();
    for (PlannedFault each : faults) {
      hashes.computeIfAbsent(way(each), it -> new StringBuilder()).append(Points.hash(each.point));
    }
    List<String> ways = new ArrayList<>();
    hashes.forEach((way, of) -> ways.add(way + "~" + of));
    return String.join("~", ways);
  }

  /** A fault of version 1. */
  private String single(PlannedFault fault) {
    return fault.kind.charAt(0)
        + Points.hash(fault.point)
        + (fault.isLate() ? fault.milliseconds(longest, lot) : "")
        + (fault.first > 0 ? "n" + fault.first : "");
  }

  /** How a group of points fails, from version 2 on. */
  private String way(PlannedFault fault) {
    String how =
        fault.isLate()
            ? fault.word() + "-" + fault.milliseconds(longest, lot)
            : fault.kind.replace(':', '-');
    return how + (fault.first > 0 ? "-n" + fault.first : "");
  }
}
