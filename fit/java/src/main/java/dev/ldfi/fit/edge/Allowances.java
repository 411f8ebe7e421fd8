package dev.ldfi.fit.edge;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * How many devices this edge has treated, and for which it may still do so. A device is counted before its stamped
 * request goes on, and never twice. An experiment whose allowance is used up enrols nobody any more, in either arm: to
 * close one alone would compare devices of different moments. Whoever is enrolled stays enrolled.
 */
final class Allowances {
  /** Devices that one process remembers, over all experiments. After that nobody else is enrolled. */
  private static final int MAX_DEVICES = 200_000;

  private static final int MAX_REPORT = 4000; // characters, for it travels in a URL

  private final Map<String, Enrolment> enrolments = new LinkedHashMap<>(); // in the order in which they came
  private int remembered;

  /** What an edge answers of a device. */
  enum Answer {
    ADMITTED,
    ADMITTED_BEFORE,
    TURNED_AWAY
  }

  /** What a report says of an experiment: distinct devices, by arm. */
  static final class Enrolled {
    final String experiment;
    final int treatment;
    final int control;
    final boolean wants; // one was turned away that would have been treated

    Enrolled(String experiment, int treatment, int control, boolean wants) {
      this.experiment = experiment;
      this.treatment = treatment;
      this.control = control;
      this.wants = wants;
    }
  }

  /** The devices of one experiment. */
  private static final class Enrolment {
    final Set<Long> treated = new HashSet<>();
    final Set<Long> compared = new HashSet<>();
    Long members;
    boolean armed = true;
    int reported;
    boolean wants;
    boolean told; // the control plane knows that

    int size() {
      return treated.size() + compared.size();
    }

    boolean isClosed() {
      return members != null && treated.size() >= members;
    }

    boolean isUrgent() {
      return !armed || isClosed() && treated.size() != reported || wants && !told;
    }

    void allow(Long now) {
      if (!Objects.equals(now, members)) {
        members = now;
        wants = false;
        told = false;
      }
    }
  }

  /** Takes over the rules of a new lease. Those that have left are frozen until they are reported. */
  synchronized void renew(Map<String, Long> members) {
    enrolments.forEach((experiment, known) -> known.armed = members.containsKey(experiment));
    enrolments.values().removeIf(known -> !known.armed && known.size() == 0);
    members.forEach((experiment, most) -> enrolments.computeIfAbsent(experiment, it -> new Enrolment()).allow(most));
  }

  /** Whether a device may be stamped; it is counted when it is admitted for the first time. */
  synchronized Answer admit(String experiment, Arm arm, long mark) {
    Enrolment known = enrolments.get(experiment);
    if (known == null || !known.armed) {
      return Answer.TURNED_AWAY;
    }
    Set<Long> devices = arm == Arm.TREATMENT ? known.treated : known.compared;
    if (devices.contains(mark)) {
      return Answer.ADMITTED_BEFORE;
    }
    if (known.isClosed() || remembered >= MAX_DEVICES) {
      known.wants |= known.isClosed() && arm == Arm.TREATMENT;
      return Answer.TURNED_AWAY;
    }
    devices.add(mark);
    remembered++;
    return Answer.ADMITTED;
  }

  /** Counts the distinct devices enrolled; urgent experiments first, as many as a URL holds. */
  synchronized List<Enrolled> report() {
    List<String> pressing = new ArrayList<>(enrolments.keySet());
    pressing.sort((one, other) -> Boolean.compare(isUrgent(other), isUrgent(one)));
    List<Enrolled> report = new ArrayList<>();
    int room = MAX_REPORT;
    for (String experiment : pressing) {
      Enrolment known = enrolments.get(experiment);
      if (known.size() == 0 && !known.wants) {
        continue;
      }
      Enrolled one = new Enrolled(experiment, known.treated.size(), known.compared.size(), known.wants);
      List<Enrolled> alone = new ArrayList<>();
      alone.add(one);
      room -= used(alone).length() + control(alone).length() + wants(alone).length() + 3;
      if (room < 0) {
        break;
      }
      report.add(one);
    }
    return report;
  }

  private boolean isUrgent(String experiment) {
    return enrolments.get(experiment).isUrgent();
  }

  /** Forgets what had left the lease before a report that the control plane now has. */
  synchronized void settle(List<Enrolled> report) {
    for (Enrolled each : report) {
      Enrolment known = enrolments.get(each.experiment);
      if (known == null) {
        continue;
      }
      known.reported = each.treatment;
      known.told = each.wants;
      if (!known.armed) {
        remembered -= known.size();
        enrolments.remove(each.experiment);
      }
    }
  }

  /** Whether there is something that the control plane should hear at once. */
  synchronized boolean isUrgent() {
    return enrolments.values().stream().anyMatch(Enrolment::isUrgent);
  }

  /** A report in the words of a URL: who was treated, */
  static String used(List<Enrolled> report) {
    return written(report, each -> each.treatment > 0, each -> each.experiment + ":" + each.treatment);
  }

  /** who is in control, */
  static String control(List<Enrolled> report) {
    return written(report, each -> each.control > 0, each -> each.experiment + ":" + each.control);
  }

  /** and which experiments turned somebody away. */
  static String wants(List<Enrolled> report) {
    return written(report, each -> each.wants, each -> each.experiment);
  }

  private static String written(List<Enrolled> report, Predicate<Enrolled> counts, Function<Enrolled, String> word) {
    return report.stream().filter(counts).map(word).collect(Collectors.joining(","));
  }
}
