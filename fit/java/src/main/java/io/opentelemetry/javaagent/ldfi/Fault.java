package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.Injection;
import java.nio.charset.StandardCharsets;

/** A fault that hits a call. Whoever is given it carries it out. */
public final class Fault {
  private static final String INJECTED = "fault injected";
  private static final String CUT = "{\"why\": \"" + INJECTED + "\", \"mo";
  private static final int MISSING = 35; // bytes of a cut body

  /** How the call fails: "refused", "status:503". */
  public final String kind;

  /** Milliseconds that "delay" and "timeout" last at most. */
  public final int longest;

  Fault(Injection injection) {
    this.kind = injection.kind;
    this.longest = injection.longest;
  }

  public boolean is(String word) {
    return kind.equals(word);
  }

  /** Whether an answer in the dependency's place is what its caller sees. */
  public boolean isAnswer() {
    return status() != 0;
  }

  /** Whether an answer to HEAD cannot be that. */
  public boolean needsBody() {
    return is("empty") || is("truncated") || is("corrupt");
  }

  /** The status of the answer; 0 for a kind that is no answer. */
  public int status() {
    if (needsBody()) {
      return 200;
    }
    return is("error") ? 503 : kind.startsWith("status:") ? Integer.parseInt(kind.substring(7)) : 0;
  }

  /** The type that the answer says its body has. */
  public String contentType() {
    return needsBody() ? "application/json" : "text/plain";
  }

  /** The body of the answer. */
  public byte[] body() {
    switch (kind) {
      case "empty":
        return new byte[0];
      case "truncated":
        return CUT.getBytes(StandardCharsets.UTF_8);
      case "corrupt":
        return ("\u00ff\u0000\u00fe" + INJECTED + "\u00c3(").getBytes(StandardCharsets.ISO_8859_1);
      default:
        return INJECTED.getBytes(StandardCharsets.UTF_8);
    }
  }

  /** The length that the answer announces: more than it has where it is cut. */
  public int announced() {
    return body().length + (is("truncated") ? MISSING : 0);
  }

  /** Whether a caller that waits so many milliseconds (0: for ever) is gone before the fault is over. */
  public boolean outlasts(long patience) {
    return patience > 0 && patience <= longest;
  }
}
