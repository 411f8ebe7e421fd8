package dev.ldfi.fit.edge;

import java.util.concurrent.TimeUnit;

/**
 * A point in time, as when a lease ends. Java's steady clock stands still while a machine sleeps, and its wall clock jumps: the lease is
 * over when either of them says so.
 */
final class Moment {
  private final long nanos;
  private final long millis;

  private Moment(long nanos, long millis) {
    this.nanos = nanos;
    this.millis = millis;
  }

  static Moment now() {
    return new Moment(System.nanoTime(), System.currentTimeMillis());
  }

  Moment after(double seconds) {
    return new Moment(nanos + (long) (seconds * 1e9), millis + (long) (seconds * 1e3));
  }

  /** Milliseconds that are left until it comes; 0 or less when it has. */
  long left() {
    long steadily = TimeUnit.NANOSECONDS.toMillis(nanos - System.nanoTime());
    return Math.min(steadily, millis - System.currentTimeMillis());
  }

  /** The later one of two. */
  Moment orLater(Moment other) {
    return isAfter(other) ? this : other;
  }

  boolean isAfter(Moment other) {
    return nanos - other.nanos > 0;
  }
}
