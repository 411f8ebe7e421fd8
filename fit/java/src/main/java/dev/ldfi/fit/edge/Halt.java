package dev.ldfi.fit.edge;

import java.io.File;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** How an edge is stopped by itself, without anybody's network: always, or while a file is there. */
final class Halt {
  private static final long LOOK_EVERY = TimeUnit.MILLISECONDS.toNanos(250);

  private final boolean always;
  private final File file;
  private final AtomicLong next = new AtomicLong(System.nanoTime());
  private volatile boolean halted;

  /** A file of null is none. */
  Halt(boolean always, String file) {
    this.always = always;
    this.file = file == null || file.isEmpty() ? null : new File(file);
  }

  /** Whether the edge is halted, as of a moment ago. */
  boolean holds() {
    if (always || file == null) {
      return always;
    }
    long now = System.nanoTime();
    long due = next.get();
    if (now - due >= 0 && next.compareAndSet(due, now + LOOK_EVERY)) {
      halted = file.exists();
    }
    return halted;
  }
}
