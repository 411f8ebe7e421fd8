package dev.ldfi.fit.edge;

/** That a device may be stamped, and by which lease. */
final class Admission {
  final Held under;

  /** It was enrolled before. */
  final boolean again;

  Admission(Held under, boolean again) {
    this.under = under;
    this.again = again;
  }
}
