package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.Hosts;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.context.propagation.TextMapSetter;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.util.Collection;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Around the propagator of baggage: a failure context goes to hosts that may have it, and to no other. Every client that
 * the agent knows passes here, with the span of its call, which says where it goes; where that does not, it goes without.
 * A message goes to its broker with it, and so does what an application sends by itself: nobody says where.
 */
final class GuardedPropagator implements TextMapPropagator {
  private static final Logger LOGGER = Logger.getLogger(GuardedPropagator.class.getName());
  private static final AttributeKey<String> URL = AttributeKey.stringKey("url.full");
  private static final AttributeKey<String> ADDRESS = AttributeKey.stringKey("server.address");
  private static final String UNKNOWN = "";

  private final TextMapPropagator inner;
  private final Hosts hosts;

  GuardedPropagator(TextMapPropagator inner, Hosts hosts) {
    this.inner = inner;
    this.hosts = hosts;
  }

  @Override
  public Collection<String> fields() {
    return inner.fields();
  }

  @Override
  public <C> Context extract(Context context, C carrier, TextMapGetter<C> getter) {
    return inner.extract(context, carrier, getter);
  }

  @Override
  public <C> void inject(Context context, C carrier, TextMapSetter<C> setter) {
    Baggage baggage = Baggage.fromContext(context);
    if (baggage.getEntryValue(FailureContext.ENTRY) == null || isAllowed(context)) {
      inner.inject(context, carrier, setter);
      return;
    }
    OwnHeaders.remove(carrier, EdgePropagator.FIELD);
    Baggage others = Arrivals.without(baggage, null);
    if (others.isEmpty()) {
      blank(carrier, setter);
    } else {
      inner.inject(context.with(others), carrier, setter);
    }
  }

  /** An application may send on what it was sent. */
  private static <C> void blank(C carrier, TextMapSetter<C> setter) {
    try {
      setter.set(carrier, EdgePropagator.FIELD, "");
    } catch (RuntimeException notForThisClient) {
      LOGGER.log(Level.FINE, "ldfi-fit leaves a call without baggage", notForThisClient);
    }
  }

  private boolean isAllowed(Context context) {
    try {
      Span span = Span.fromContext(context);
      boolean isCall = span instanceof ReadableSpan && ((ReadableSpan) span).getKind() == SpanKind.CLIENT;
      return !isCall || isAllowed((ReadableSpan) span);
    } catch (RuntimeException | LinkageError ours) {
      LOGGER.log(Level.FINE, "ldfi-fit keeps a failure context back, for a fault of its own", ours);
      return false;
    }
  }

  /** Whether both may have it: where the call goes by its URL, and by its address. */
  private boolean isAllowed(ReadableSpan call) {
    String url = call.getAttribute(URL);
    String address = call.getAttribute(ADDRESS);
    boolean isAllowed = url == null || hosts.allow(Names.hostOf(url));
    return isAllowed && (address == null ? url != null || hosts.allow(UNKNOWN) : hosts.allow(address));
  }
}
