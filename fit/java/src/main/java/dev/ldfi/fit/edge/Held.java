package dev.ldfi.fit.edge;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Rules that are known, until when they may be acted upon, and the contexts that were signed under them. */
final class Held {
  static final Held QUIET = new Held(Lease.QUIET, Moment.now(), false);

  private static final int REMEMBERED = 1000;

  final Lease lease;
  final Moment ends;

  /** A stream is open that tells which rules there are. */
  final boolean streamed;

  /** By experiment, arm and expiry. */
  private final Map<String, String> signed = new ConcurrentHashMap<>();

  Held(Lease lease, Moment ends, boolean streamed) {
    this.lease = lease;
    this.ends = ends;
    this.streamed = streamed;
  }

  /** Whether they may be acted upon. */
  boolean isInForce() {
    return ends.left() > 0;
  }

  String signed(String what) {
    return signed.get(what);
  }

  void remember(String what, String value) {
    if (signed.size() >= REMEMBERED) {
      signed.clear();
    }
    signed.put(what, value);
  }
}
