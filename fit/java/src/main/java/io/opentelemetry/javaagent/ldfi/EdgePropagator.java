package io.opentelemetry.javaagent.ldfi;

import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.context.propagation.TextMapSetter;
import java.util.Collection;

/**
 * Around the propagator of baggage. Of what comes in it keeps the headers for who decides on them; to what goes out, as
 * long as nobody has changed the baggage, it writes the header as it was sent, less what was taken out and with the
 * stamp in front.
 */
final class EdgePropagator implements TextMapPropagator {
  static final String FIELD = "baggage";

  private static final ContextKey<Onward> ONWARD = ContextKey.named("ldfi-fit-onward");

  private final TextMapPropagator inner;

  EdgePropagator(TextMapPropagator inner) {
    this.inner = inner;
  }

  /** The baggage of a request, and the header that says so. */
  private static final class Onward {
    final Baggage baggage;
    final String header;

    Onward(Baggage baggage, String header) {
      this.baggage = baggage;
      this.header = header;
    }
  }

  /** Has a request go on with this baggage, which this header says. */
  static Context with(Context context, Baggage baggage, String header) {
    return context.with(baggage).with(ONWARD, new Onward(baggage, header));
  }

  @Override
  public Collection<String> fields() {
    return inner.fields();
  }

  @Override
  public <C> Context extract(Context context, C carrier, TextMapGetter<C> getter) {
    return Arriving.leave(inner.extract(context, carrier, getter), carrier, getter);
  }

  @Override
  public <C> void inject(Context context, C carrier, TextMapSetter<C> setter) {
    Onward onward = context.get(ONWARD);
    if (onward == null) {
      inner.inject(context, carrier, setter);
      return;
    }
    OwnHeaders.remove(carrier, FIELD);
    Baggage baggage = Baggage.fromContext(context);
    boolean isChanged = !onward.baggage.equals(baggage);
    if (isChanged && !baggage.isEmpty()) {
      inner.inject(context, carrier, setter);
      return;
    }
    try {
      // Where nothing is left, empty: an application may send on what it was sent.
      setter.set(carrier, FIELD, isChanged ? "" : onward.header);
    } catch (RuntimeException notForThisClient) { // some take no characters beyond ASCII
      inner.inject(context, carrier, setter);
    }
  }
}
