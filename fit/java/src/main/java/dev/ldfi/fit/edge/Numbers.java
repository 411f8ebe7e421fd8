package dev.ldfi.fit.edge;

import java.util.TreeSet;

/**
 * Counts the asks of a process, from 1. An ask is settled when its answer has come, or when it has been given up; they
 * may be so in any order.
 */
final class Numbers {
  private final TreeSet<Integer> open = new TreeSet<>();
  private int last;

  /** Up to which one the control plane knows that all are settled. */
  int told;

  int next() {
    open.add(++last);
    return last;
  }

  void settle(int number) {
    open.remove(number);
  }

  /** Up to which number all are. */
  int settled() {
    return open.isEmpty() ? last : open.first() - 1;
  }
}
