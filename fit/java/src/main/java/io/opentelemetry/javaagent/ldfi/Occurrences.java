package io.opentelemetry.javaagent.ldfi;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Counts how often each request (trace) has reached each point, for faults that hit only the first few calls.
 * The longest untouched are forgotten first. In one process: the replicas of a service do not know of each
 * other.
 */
final class Occurrences {
  static final int REMEMBERED = 4096;

  private final Map<String, Integer> counts =
      new LinkedHashMap<String, Integer>(64, 0.75f, true) {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Integer> eldest) {
          return size() > REMEMBERED;
        }
      };

  /** Counts this call; whether it is among the first. */
  synchronized boolean admits(String trace, String point, int first) {
    return counts.merge(trace + point, 1, Integer::sum) <= first;
  }

  synchronized int size() {
    return counts.size();
  }
}
