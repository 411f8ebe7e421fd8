package dev.ldfi.fit.edge;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * How many devices this edge has treated, and for which it may still do so. A device is counted before its stamped
 * request goes on, and never twice. An experiment whose allowance is used up enrols nobody any more, in either arm: to
 * close one alone would compare devices of different moments. A device of either arm may then be asked for, one by one.
 * Whoever is enrolled stays enrolled.
 */
final class Allowances {
  /** Devices that one process remembers, over all experiments. After that nobody else is enrolled. */
  private static final int MAX_DEVICES = 200_000;

  private static final int MAX_REPORT = 4000; // characters, for it travels in a URL

  private final Map<String, Enrolment> enrolments = new LinkedHashMap<>(); // in the order in which they came
  private final Numbers asks = new Numbers();
  private int remembered;
  private int late; // devices that nobody was granted in time, in all

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

  /**
   * What the control plane hears of the devices, up to which number all asks are settled, and for how many devices no
   * answer came in time.
   */
  static final class Report {
    final List<Enrolled> counts;
    final int asked;
    final int late;

    Report(List<Enrolled> counts, int asked, int late) {
      this.counts = counts;
      this.asked = asked;
      this.late = late;
    }

    /** It in the words of a URL: who was treated, */
    String used() {
      return written(counts, each -> each.treatment > 0, each -> each.experiment + ":" + each.treatment);
    }

    /** who is in control, */
    String control() {
      return written(counts, each -> each.control > 0, each -> each.experiment + ":" + each.control);
    }

    /** and which experiments turned somebody away. */
    String wants() {
      return written(counts, each -> each.wants, each -> each.experiment);
    }

    private static String written(List<Enrolled> counts, Predicate<Enrolled> some, Function<Enrolled, String> word) {
      return counts.stream().filter(some).map(word).collect(Collectors.joining(","));
    }
  }

  /** The devices of one experiment. */
  private static final class Enrolment {
    final Set<Long> treated = new HashSet<>();
    final Set<Long> compared = new HashSet<>();
    Long members;
    boolean given; // by a lease; what a stream offers is nobody's allowance
    boolean armed = true;
    boolean frozen; // a report was written after it had left the lease
    int treatedTold; // the control plane has heard of these,
    int comparedTold;
    boolean wants; // one was turned away that would have been treated
    boolean wantsTold; // and of that

    int size() {
      return treated.size() + compared.size();
    }

    Set<Long> in(Arm arm) {
      return arm == Arm.TREATMENT ? treated : compared;
    }

    boolean isClosed() {
      return given && members != null && treated.size() >= members;
    }

    /** Whether the control plane should hear of it at once. Of whom it has granted it knows. */
    boolean isUrgent() {
      boolean isUsedUp = isClosed() && members > 0 && treated.size() != treatedTold;
      return !armed || isUsedUp || wants && !wantsTold;
    }

    void allow(Long now) {
      if (!given || !Objects.equals(now, members)) {
        members = now;
        given = true;
        wants = false;
        wantsTold = false;
      }
    }

    /** With an allowance of none devices can be asked for; a larger one has to come with a lease. */
    void offer(Long now) {
      if (!given && now != null && now == 0) {
        allow(now);
      }
    }
  }

  /** Takes over the rules of a new lease. Those that have left are frozen until they are reported. */
  void renew(Map<String, Long> members) {
    take(members, Enrolment::allow);
  }

  /** Takes over rules that nobody may act upon yet. */
  void offer(Map<String, Long> members) {
    take(members, Enrolment::offer);
  }

  private synchronized void take(Map<String, Long> members, BiConsumer<Enrolment, Long> allow) {
    enrolments.forEach((experiment, known) -> known.armed = members.containsKey(experiment));
    enrolments.values().removeIf(known -> !known.armed && known.size() == 0);
    members.forEach(
        (experiment, most) -> allow.accept(enrolments.computeIfAbsent(experiment, it -> new Enrolment()), most));
  }

  /** Whether a device may be stamped; it is counted when it is admitted for the first time. */
  synchronized Answer admit(Asking whom) {
    Enrolment known = enrolments.get(whom.experiment);
    if (known == null || !known.armed) {
      return Answer.TURNED_AWAY;
    }
    if (known.in(whom.arm).contains(whom.mark)) {
      return Answer.ADMITTED_BEFORE;
    }
    if (!known.given || known.isClosed() || remembered >= MAX_DEVICES) {
      known.wants |= known.isClosed() && whom.arm == Arm.TREATMENT;
      return Answer.TURNED_AWAY;
    }
    known.in(whom.arm).add(whom.mark);
    remembered++;
    return Answer.ADMITTED;
  }

  /** Whether a device can only be enrolled if it is asked for. */
  synchronized boolean isUsedUp(Asking whom) {
    Enrolment known = enrolments.get(whom.experiment);
    boolean isOpen = known != null && known.armed && remembered < MAX_DEVICES;
    return isOpen && known.isClosed() && !known.in(whom.arm).contains(whom.mark);
  }

  /** The number of an ask that is to be made. */
  synchronized int ask() {
    return asks.next();
  }

  /** Takes note that an ask has come to its end; whether the device is enrolled by it. */
  synchronized boolean settled(int ask, boolean granted, Asking whom) {
    asks.settle(ask);
    Enrolment known = enrolments.get(whom.experiment);
    if (!granted || known == null || !known.armed || remembered >= MAX_DEVICES) {
      return false;
    }
    if (known.in(whom.arm).add(whom.mark)) {
      remembered++;
    }
    return true;
  }

  /** Counts a device that nobody was granted in time. */
  synchronized void tooLate() {
    late++;
  }

  /** Whether the control plane has to hear of anything: of devices that are enrolled, or of asks. */
  synchronized boolean hasNews() {
    return asks.settled() > asks.told || enrolments.values().stream().anyMatch(known -> known.size() > 0);
  }

  /**
   * Counts the distinct devices enrolled; urgent experiments first, as many as a URL holds. Asks are said to be settled
   * only where nobody whom they enrolled is left out.
   */
  synchronized Report report() {
    List<String> pressing = new ArrayList<>(enrolments.keySet());
    pressing.sort((one, other) -> Boolean.compare(isUrgent(other), isUrgent(one)));
    List<Enrolled> counts = new ArrayList<>();
    int asked = asks.settled();
    int room = MAX_REPORT;
    for (String experiment : pressing) {
      Enrolment known = enrolments.get(experiment);
      known.frozen = !known.armed;
      if (known.size() == 0 && !known.wants) {
        continue;
      }
      Enrolled one = new Enrolled(experiment, known.treated.size(), known.compared.size(), known.wants);
      room -= lengthOf(one);
      if (room >= 0) {
        counts.add(one);
      } else if (one.treatment != known.treatedTold || one.control != known.comparedTold) {
        asked = asks.told;
      }
    }
    return new Report(counts, asked, late);
  }

  /** How many characters an experiment takes, and a separator for each of its words. */
  private static int lengthOf(Enrolled one) {
    Report alone = new Report(Collections.singletonList(one), 0, 0);
    return alone.used().length() + alone.control().length() + alone.wants().length() + 3;
  }

  private boolean isUrgent(String experiment) {
    return enrolments.get(experiment).isUrgent();
  }

  /** Forgets what had left the lease before a report that the control plane now has. */
  synchronized void settle(Report report) {
    asks.told = Math.max(asks.told, report.asked);
    for (Enrolled each : report.counts) {
      Enrolment known = enrolments.get(each.experiment);
      if (known == null) {
        continue;
      }
      known.treatedTold = each.treatment;
      known.comparedTold = each.control;
      known.wantsTold = each.wants;
      if (known.frozen && !known.armed) {
        remembered -= known.size();
        enrolments.remove(each.experiment);
      }
    }
  }

  /** Whether there is something that the control plane should hear at once. */
  synchronized boolean isUrgent() {
    return enrolments.values().stream().anyMatch(Enrolment::isUrgent);
  }
}
