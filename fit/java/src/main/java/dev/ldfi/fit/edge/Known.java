package dev.ldfi.fit.edge;

/**
 * Which rules an edge knows. To know them is one thing: a stream tells them as offers, which nobody may act upon. The
 * right to act is another, and comes with a lease, or with a device that was granted.
 */
final class Known {
  private final Allowances allowances;
  private volatile Held latest = Held.QUIET;

  Known(Allowances allowances) {
    this.allowances = allowances;
  }

  /** The latest rules, be they in force or offered; those of nobody where they are neither. */
  Held rules() {
    Held now = latest;
    return now.streamed || now.isInForce() ? now : Held.QUIET;
  }

  /** What an edge has heard last. */
  Held latest() {
    return latest;
  }

  /** Takes over the rules that a stream tells. They are in force for as long as those before them were. */
  synchronized void offer(Lease read) {
    if (read.precedes(latest.lease)) {
      latest = new Held(latest.lease, latest.ends, true);
      return;
    }
    allowances.offer(read.members());
    latest = new Held(read, latest.ends, true);
  }

  /** Takes over rules that may be acted upon. A stream that tells of another epoch is no longer believed. */
  synchronized void lease(Lease read, Moment ends) {
    if (read.precedes(latest.lease)) {
      return;
    }
    allowances.renew(read.members());
    latest = new Held(read, ends, latest.streamed && read.epoch().equals(latest.lease.epoch()));
  }

  /** Prolongs the lease of the rules of this version, and returns them; null where others are known by now. */
  synchronized Held grant(String version, Moment ends) {
    if (!latest.lease.version.equals(version)) {
      return null;
    }
    latest = new Held(latest.lease, latest.ends.orLater(ends), latest.streamed);
    return latest;
  }

  /** Drops what a stream has offered. */
  synchronized void withdraw() {
    latest = new Held(latest.lease, latest.ends, false);
  }

  /** Ends the right to act. */
  synchronized void lapse() {
    latest = new Held(latest.lease, Moment.now(), latest.streamed);
  }

  /** Drops everything. */
  synchronized void silence() {
    latest = Held.QUIET;
  }
}
