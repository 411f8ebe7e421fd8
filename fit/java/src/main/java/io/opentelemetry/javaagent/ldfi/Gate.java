package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.Injection;
import dev.ldfi.fit.Keys;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.time.Instant;
import java.util.List;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Where every call of the process passes, in the extension's class loader. The agent has begun the call's span
 * when it gets here: the span says which point it is, and carries the proof. A call without such a span, or one
 * that is not recorded, is let through, for what cannot be seen afterwards proves nothing. Whatever goes wrong
 * in here lets the call through, too.
 */
public final class Gate {
  private static final Logger LOGGER = Logger.getLogger(Gate.class.getName());
  private static final Gate INSTALLED = fromEnvironment();

  private final Keys keys;
  private final Contexts contexts;
  private final Occurrences occurrences = new Occurrences();
  private final Requests requests = new Requests();
  private final Known points = new Known();
  private volatile String service;

  Gate(Keys keys) {
    this.keys = keys;
    this.contexts = new Contexts(keys);
  }

  /** The gate of this process; null where it has no keys, or none that can be read. */
  static Gate installed() {
    return INSTALLED;
  }

  private static Gate fromEnvironment() {
    String text = System.getenv(Keys.VARIABLE);
    if (text == null || text.isEmpty()) {
      return null;
    }
    try {
      return new Gate(Keys.parse(text));
    } catch (IllegalArgumentException unreadable) {
      LOGGER.log(Level.SEVERE, unreadable.getMessage() + "; nothing is injected");
      return null;
    }
  }

  Keys keys() {
    return keys;
  }

  Requests requests() {
    return requests;
  }

  /** Whether the current request carries a context: all that is asked of one without. */
  public static boolean isArmed() {
    return INSTALLED != null && Baggage.current().getEntryValue(FailureContext.ENTRY) != null;
  }

  /** The same of a request that goes on in another thread than that in which its context is current. */
  public static boolean isArmed(Context context) {
    return INSTALLED != null && Baggage.fromContext(context).getEntryValue(FailureContext.ENTRY) != null;
  }

  /**
   * Decides what happens to the call by HTTP that the current span is of; null lets it through.
   *
   * @param can whether such a call can fail in this way as it really would. Where it cannot, it is let through
   *     and nothing is claimed
   */
  public static Fault pass(Predicate<Fault> can) {
    return pass(span -> Names.http(span, null), can);
  }

  /** Decides the same for a call by HTTP whose method may have changed since its span began. */
  public static Fault pass(Supplier<String> method, Predicate<Fault> can) {
    return pass(span -> Names.http(span, method), can);
  }

  /** Decides the same for a remote procedure call. */
  public static Fault passRpc(Predicate<Fault> can) {
    return pass(Names::rpc, can);
  }

  /** Decides the same for a message that is produced. */
  public static Fault passMessage(Predicate<Fault> can) {
    return pass(Names::message, can);
  }

  /** Decides the same for a statement that a database is to execute, or a command. */
  public static Fault passStatement(Predicate<Fault> can) {
    return pass(Names::statement, can);
  }

  /** The verb of the statement that the current span is of. */
  public static String verb() {
    Span current = Span.current();
    return current instanceof ReadableSpan ? Names.verb((ReadableSpan) current) : "";
  }

  private static Fault pass(Function<ReadableSpan, List<String>> named, Predicate<Fault> can) {
    Gate gate = INSTALLED;
    if (gate == null) {
      return null;
    }
    String value = Baggage.current().getEntryValue(FailureContext.ENTRY);
    if (value == null) {
      return null;
    }
    try {
      return gate.decide(value, Span.current(), named, can);
    } catch (RuntimeException | LinkageError ours) {
      LOGGER.log(Level.FINE, "ldfi-fit lets a call through, for a fault of its own", ours);
      return null;
    }
  }

  /** Decides the same for a call in a span of ours, which says its point from its beginning. */
  static Fault pass(Span span, Known.Point point, Predicate<Fault> can) {
    Gate gate = INSTALLED;
    String value = Baggage.current().getEntryValue(FailureContext.ENTRY);
    if (gate == null || value == null || !span.isRecording()) {
      return null;
    }
    try {
      FailureContext found = gate.contexts.recognized(value, Instant.now());
      Injection injection = found == null ? null : found.injections.get(point.hash);
      Fault fault = injection == null ? null : new Fault(injection, "");
      return fault != null && can.test(fault) && gate.mark(span, point.name, found, injection) ? fault : null;
    } catch (RuntimeException | LinkageError ours) {
      LOGGER.log(Level.FINE, "ldfi-fit lets a call through, for a fault of its own", ours);
      return null;
    }
  }

  /** Whether the current request's context aims at a point, in a way in which it can fail. */
  boolean aims(Known.Point point, Predicate<Fault> can) {
    try {
      FailureContext found = contextOf(Context.current());
      Injection injection = found == null ? null : found.injections.get(point.hash);
      return injection != null && can.test(new Fault(injection, ""));
    } catch (RuntimeException | LinkageError ours) {
      LOGGER.log(Level.FINE, "ldfi-fit lets a call through, for a fault of its own", ours);
      return false;
    }
  }

  /** The point of a call whose name is made of this. */
  Known.Point named(ReadableSpan span, List<String> of) {
    return points.of(service(span), of);
  }

  /** The context that a request carries and that is to be obeyed now; null where there is none. */
  FailureContext contextOf(Context context) {
    String value = Baggage.fromContext(context).getEntryValue(FailureContext.ENTRY);
    return value == null ? null : contexts.at(value, Instant.now());
  }

  Fault decide(
      String value, Span current, Function<ReadableSpan, List<String>> named, Predicate<Fault> can) {
    FailureContext found = contexts.recognized(value, Instant.now());
    if (found == null || !(current instanceof ReadableSpan) || !current.isRecording()) {
      return null;
    }
    ReadableSpan span = (ReadableSpan) current;
    if (span.getKind() != SpanKind.CLIENT && span.getKind() != SpanKind.PRODUCER) {
      return null;
    }
    Known.Point known = points.of(service(span), named.apply(span));
    Injection injection = known == null ? null : found.injections.get(known.hash);
    if (injection == null) {
      return null;
    }
    String point = known.name;
    Fault fault = new Fault(injection, Names.hostOf(span));
    if (!can.test(fault)) {
      return null;
    }
    if (span.getAttribute(Marks.POINT) != null) {
      return fires(span, fault) ? fault : null;
    }
    return mark(current, point, found, injection) ? fault : null;
  }

  /** One span is one decision: what calls itself within it, or tries again, is hit again and not counted. */
  private static boolean fires(ReadableSpan span, Fault fault) {
    return fault.kind.equals(span.getAttribute(Marks.FIRED)) && !fault.is("delay");
  }

  /** Writes what happens, or would happen, on the span; before that a mark has left. */
  private boolean mark(Span span, String point, FailureContext found, Injection injection) {
    span.setAttribute(Marks.POINT, point);
    if (requests.isOver(span, Context.current())) {
      span.setAttribute(Marks.OUTLIVED, true);
      return false;
    }
    if (!found.expires.isAfter(Instant.now())) {
      span.setAttribute(Marks.EXPIRED, true);
      return false;
    }
    if (injection.first > 0
        && !occurrences.admits(span.getSpanContext().getTraceId(), point, injection.first)) {
      span.setAttribute(Marks.LET_THROUGH, true);
      return false;
    }
    ReadableSpan request = requests.of(span, Context.current());
    Marking.leave(span, request, found.arm(), found.experiment, injection.kind, point);
    if (found.control) {
      span.setAttribute(Marks.WOULD_FIRE, injection.kind);
      return false;
    }
    span.setAttribute(Marks.FIRED, injection.kind);
    span.addEvent(
        Marks.EVENT,
        Attributes.of(
            Marks.FIRED, injection.kind, Marks.EXPERIMENT, found.experiment, Marks.POINT, point));
    return true;
  }

  private String service(ReadableSpan span) {
    if (service == null) {
      service = named(span);
    }
    return service;
  }

  /** The name of the service that the span is of. */
  static String named(ReadableSpan span) {
    String named = span.toSpanData().getResource().getAttribute(AttributeKey.stringKey("service.name"));
    return named == null ? "" : named;
  }
}
