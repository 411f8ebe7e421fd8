package dev.ldfi.fit.edge;

import java.util.HashMap;
import java.util.Map;

/** Until when nobody is to be asked for: after asks that failed, and after devices that were refused. */
final class Rests {
  private static final double FAILED = 0.25; // seconds; doubles
  private static final double LONGEST = 1;
  private static final double REFUSED = 0.2; // for devices of the same experiment

  private final int remembered;
  private final Map<String, Moment> refused = new HashMap<>();
  private Moment again; // null: now
  private int failures;

  /** One that remembers so many experiments. */
  Rests(int remembered) {
    this.remembered = remembered;
  }

  /** Why nobody is to be asked now. */
  enum Why {
    NOT,
    FAILED,
    REFUSED
  }

  Why why(String experiment) {
    if (left() > 0) {
      return Why.FAILED;
    }
    Moment until = refused.get(experiment);
    return until != null && until.left() > 0 ? Why.REFUSED : Why.NOT;
  }

  /** Takes note of an ask that began then, and failed. Those that fail together are one failure. */
  void failed(Moment began) {
    if (again == null || !again.isAfter(began)) {
      again = Moment.now().after(Math.min(LONGEST, FAILED * (1 << Math.min(failures, 10))));
      failures++;
    }
  }

  /** Takes note of an answer that came in time. */
  void answered(String experiment, boolean granted) {
    failures = 0;
    again = null;
    if (granted) {
      refused.remove(experiment);
      return;
    }
    if (refused.size() >= remembered) {
      refused.clear();
    }
    refused.put(experiment, Moment.now().after(REFUSED));
  }

  /** Milliseconds for which nobody is asked any more after failures; 0 or less for none. */
  long left() {
    return again == null ? 0 : again.left();
  }
}
