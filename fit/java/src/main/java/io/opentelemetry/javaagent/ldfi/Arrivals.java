package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.edge.BaggageHeader;
import dev.ldfi.fit.edge.Edge;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.BaggageBuilder;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.impl.InstrumentationUtil;
import io.opentelemetry.context.Context;
import io.opentelemetry.instrumentation.api.incubator.instrumenter.InstrumenterCustomizer;
import io.opentelemetry.instrumentation.api.incubator.instrumenter.InstrumenterCustomizer.InstrumentationType;
import io.opentelemetry.instrumentation.api.incubator.instrumenter.InstrumenterCustomizerProvider;
import io.opentelemetry.instrumentation.api.instrumenter.ContextCustomizer;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Makes this process an edge, where {@code -Dldfi.edge=true} says so: whichever server the agent knows, each request
 * passes here when its headers were read and its span has not begun. So nothing of a context from outside is ever in
 * the request's context, and the sampler sees the stamp. Calls of remote procedures are never stamped.
 */
public final class Arrivals implements InstrumenterCustomizerProvider {
  private static final Logger LOGGER = Logger.getLogger(Arrivals.class.getName());
  private static final Edge EDGE = fromEnvironment();

  /** The edge of this process; null where it is none. */
  static Edge edge() {
    return EDGE;
  }

  private static Edge fromEnvironment() {
    String said = System.getProperty("ldfi.edge", System.getenv("LDFI_EDGE"));
    if (!"true".equalsIgnoreCase(said)) {
      return null;
    }
    Gate gate = Start.gate();
    return new Edge(gate == null ? null : gate.keys(), System.getenv(), Arrivals::unseen);
  }

  /** Runs what the agent shall make no spans of. */
  private static void unseen(Runnable asks) {
    try {
      InstrumentationUtil.suppressInstrumentation(asks);
    } catch (LinkageError moved) {
      asks.run();
    }
  }

  @Override
  public void customize(InstrumenterCustomizer instrumenter) {
    if (EDGE == null || !Agent.isSupported(Agent.version())) {
      return;
    }
    boolean isHttp = instrumenter.hasType(InstrumentationType.HTTP_SERVER);
    if (isHttp || instrumenter.hasType(InstrumentationType.RPC_SERVER)) {
      ContextCustomizer<Object> passing = (context, request, began) -> admitted(context, began, isHttp);
      instrumenter.addContextCustomizer(passing);
    }
  }

  private static Context admitted(Context context, Attributes began, boolean isHttp) {
    Arriving<?> arriving = Arriving.in(context);
    if (arriving == null) {
      return context;
    }
    try {
      return admitted(context, arriving, began, isHttp);
    } catch (RuntimeException | LinkageError ours) {
      LOGGER.log(Level.FINE, "ldfi-fit leaves a request without baggage, for a fault of its own", ours);
      return EdgePropagator.with(context, Baggage.empty(), "");
    } finally {
      arriving.letGo();
    }
  }

  private static Context admitted(Context context, Arriving<?> arriving, Attributes began, boolean isHttp) {
    EDGE.start();
    String inbound = arriving.header(EdgePropagator.FIELD);
    String device = EDGE.devices().of(arriving::values, () -> arriving.peer(began));
    boolean mayBeStamped = isHttp && arriving.header("upgrade").isEmpty();
    Edge.Decision done = EDGE.decide(inbound, device, mayBeStamped ? () -> arriving.request(began) : null);
    Context onward = context;
    boolean mayEndInBaggage = !arriving.header("transfer-encoding").isEmpty(); // in a trailer, when all is decided
    if (!inbound.isEmpty() || done.context != null || mayEndInBaggage) {
      onward = EdgePropagator.with(context, without(Baggage.fromContext(context), done.context), done.header);
    }
    return Start.gate() == null
        ? onward
        : Word.leave(onward, EDGE.told(() -> arriving.request(began)), done.again);
  }

  /** Baggage with this context, or none, in place of whatever was ours. */
  static Baggage without(Baggage carried, String context) {
    BaggageBuilder kept = carried.toBuilder();
    carried.forEach(
        (name, entry) -> {
          if (BaggageHeader.isOurs(name)) {
            kept.remove(name);
          }
        });
    return context == null ? kept.build() : kept.put(FailureContext.ENTRY, context).build();
  }
}
