package dev.ldfi.fit;

/** What the control plane says, or a part of it, is not what it should be. */
public final class NotUnderstood extends RuntimeException {
  private static final long serialVersionUID = 1;

  public NotUnderstood(String what) {
    super("rules not understood: " + what);
  }
}
