package dev.ldfi.fit.edge;

/** What the control plane says, or a part of it, is not what it should be. */
final class NotUnderstood extends RuntimeException {
  private static final long serialVersionUID = 1;

  NotUnderstood(String what) {
    super("rules not understood: " + what);
  }
}
