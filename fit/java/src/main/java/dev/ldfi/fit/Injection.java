package dev.ldfi.fit;

/** What a failure context asks of one point. */
public final class Injection {
  /** How the call fails: "refused", "status:503". */
  public final String kind;

  /** Milliseconds: for "delay" and "timeout" the call hangs so long at most; 0 for what does not last. */
  public final int longest;

  /** How many calls of a request are hit; 0 is every call. */
  public final int first;

  Injection(String kind, int longest, int first) {
    this.kind = kind;
    this.longest = longest;
    this.first = first;
  }
}
