package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.Injection;
import dev.ldfi.fit.Kind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** A fault that hits a call. Whoever is given it carries it out. */
public final class Fault {
  private static final String INJECTED = "fault injected";

  /** How the call fails: "refused", "status:503". */
  public final String kind;

  /** Milliseconds that "delay" and "timeout" last at most. */
  public final int longest;

  /** Where the call goes, by a name or an address, without a port; empty where that is not known. */
  public final String host;

  private final Kind known;

  Fault(Injection injection, String host) {
    this(injection.kind, injection.longest, host);
  }

  private Fault(String kind, int longest, String host) {
    this.kind = kind;
    this.longest = longest;
    this.host = host;
    this.known = Kind.of(kind);
  }

  public boolean is(String word) {
    return kind.equals(word);
  }

  /** The same call's fault, if it were of this kind. */
  public Fault as(String other) {
    return new Fault(other, longest, host);
  }

  /** Whether an answer in the dependency's place is what its caller sees. */
  public boolean isAnswer() {
    return status() != 0;
  }

  /** Whether an answer to HEAD cannot be that. */
  public boolean needsBody() {
    return known.body;
  }

  /** The status of the answer; 0 for a kind that is no answer. */
  public int status() {
    if (is("error")) {
      return 503;
    }
    return kind.startsWith("status:") ? Integer.parseInt(kind.substring(7)) : known.status;
  }

  /** The type that the answer says its body has. */
  public String contentType() {
    return needsBody() ? "application/json" : "text/plain";
  }

  /** The body of the answer. */
  public byte[] body() {
    byte[] own = known.answer();
    return own == null ? INJECTED.getBytes(StandardCharsets.UTF_8) : own;
  }

  /** The length that the answer announces: more than it has where it is cut. */
  public int announced() {
    return body().length + known.missing;
  }

  /** Whether the call finds no connection: for want of a name that resolves only where its host has a name. */
  public boolean isUnconnected() {
    return known.isUnconnected(host);
  }

  /** What Java says of a connection that cannot be made so. */
  public IOException unconnected() {
    return (IOException) made(known.connecting.get("exception"), said("text"));
  }

  /** What a library, by its entry in {@code kinds.json}, says of that. */
  public String said(String library) {
    return known.connecting.get(library).replace("{host}", host);
  }

  /** The exception, of those without words, by which a library tells that. */
  public Throwable thrown(String library) {
    return made(known.connecting.get(library));
  }

  private static Throwable made(String exception, String... words) {
    try {
      Class<?>[] taken = words.length == 0 ? new Class<?>[0] : new Class<?>[] {String.class};
      return (Throwable) Class.forName(exception).getConstructor(taken).newInstance((Object[]) words);
    } catch (ReflectiveOperationException never) {
      throw new IllegalStateException(never); // they are Java's own
    }
  }

  /** Whether a caller that waits so many milliseconds (0: for ever) is gone before the fault is over. */
  public boolean outlasts(long patience) {
    return patience > 0 && patience <= longest;
  }
}
