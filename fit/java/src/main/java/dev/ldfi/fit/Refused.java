package dev.ldfi.fit;

/** A failure context is not to be obeyed. */
public final class Refused extends Exception {
  private static final long serialVersionUID = 1;

  /** Why it is not. */
  public enum Reason {
    MALFORMED,
    FORGED,
    EXPIRED
  }

  /** Why it is not. */
  public final Reason reason;

  Refused(Reason reason) {
    super(reason.name(), null, false, false); // it happens to any request: no stack is walked for it
    this.reason = reason;
  }
}
