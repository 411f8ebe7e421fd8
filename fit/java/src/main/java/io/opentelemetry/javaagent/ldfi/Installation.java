package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.Hosts;
import dev.ldfi.fit.edge.Edge;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;
import java.util.Arrays;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Puts sampler and edge in place, and says at start whether anything is injected here. */
public final class Installation implements AutoConfigurationCustomizerProvider {
  private static final Logger LOGGER = Logger.getLogger(Installation.class.getName());

  /** The agents that the tests have seen, the oldest and the newest. */
  private static final List<String> TESTED = Arrays.asList("2.31.1", "2.33.1");

  @Override
  public void customize(AutoConfigurationCustomizer configuration) {
    Gate gate = Start.gate();
    Edge edge = Arrivals.edge();
    if (gate == null && edge == null) {
      return;
    }
    String agent = Agent.version();
    if (!Agent.isSupported(agent)) {
      LOGGER.log(Level.SEVERE, "ldfi-fit is off: agent " + agent + " is too old, 2.31 or newer is needed");
      return;
    }
    if (edge != null) {
      configuration.addPropagatorCustomizer(
          (propagator, properties) ->
              propagator.fields().contains(EdgePropagator.FIELD) ? new EdgePropagator(propagator) : propagator);
    }
    if (gate != null) {
      configuration.addSamplerCustomizer((sampler, properties) -> new KeepingSampler(sampler, gate));
      Hosts hosts = hosts();
      configuration.addPropagatorCustomizer(
          (propagator, properties) ->
              propagator.fields().contains(EdgePropagator.FIELD)
                  ? new GuardedPropagator(propagator, hosts)
                  : propagator);
    }
    String keys = gate == null ? "no keys" : gate.keys().toString();
    String tested = TESTED.contains(agent) ? "" : ", which is not among those it was tested with";
    LOGGER.log(Level.INFO, "ldfi-fit is on: " + keys + ", agent " + agent + tested + role(edge));
  }

  private static Hosts hosts() {
    Hosts hosts = Hosts.parse(System.getenv(Hosts.VARIABLE));
    for (String each : hosts.ignored()) {
      LOGGER.log(Level.WARNING, Hosts.VARIABLE + ": " + each + " is no host, pattern or network; it is ignored");
    }
    return hosts;
  }

  private static String role(Edge edge) {
    if (edge == null) {
      return "";
    }
    return edge.stamps() ? "; it is the edge" : "; it is an edge that stamps nothing, and takes contexts out";
  }
}
