package dev.ldfi.fit.edge;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A lease in force, and the contexts that were signed while it was. */
final class Held {
  static final Held QUIET = new Held(Lease.QUIET, Moment.now());

  private static final int REMEMBERED = 1000;

  final Lease lease;
  final Moment ends;

  /** By experiment, arm and expiry. */
  private final Map<String, String> signed = new ConcurrentHashMap<>();

  Held(Lease lease, Moment ends) {
    this.lease = lease;
    this.ends = ends;
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
