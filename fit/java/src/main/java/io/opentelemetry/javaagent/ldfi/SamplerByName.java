package io.opentelemetry.javaagent.ldfi;

import io.opentelemetry.sdk.autoconfigure.spi.ConfigProperties;
import io.opentelemetry.sdk.autoconfigure.spi.traces.ConfigurableSamplerProvider;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The sampler of {@code OTEL_TRACES_SAMPLER=fit}, which services in other languages are told: the agent refuses to
 * start with a name that it does not know. It keeps the share of traces that {@code OTEL_TRACES_SAMPLER_ARG} says (all,
 * without one) and what a parent has decided. What is under experiment is kept around it, as around every sampler.
 */
public final class SamplerByName implements ConfigurableSamplerProvider {
  private static final Logger LOGGER = Logger.getLogger(SamplerByName.class.getName());
  private static final String ARGUMENT = "otel.traces.sampler.arg";

  @Override
  public String getName() {
    return "fit";
  }

  @Override
  public Sampler createSampler(ConfigProperties properties) {
    return Sampler.parentBased(ofShare(properties.getString(ARGUMENT)));
  }

  private static Sampler ofShare(String argument) {
    if (argument == null || argument.isEmpty()) {
      return Sampler.alwaysOn();
    }
    try {
      return Sampler.traceIdRatioBased(Double.parseDouble(argument));
    } catch (IllegalArgumentException unreadable) {
      LOGGER.log(
          Level.WARNING, "OTEL_TRACES_SAMPLER_ARG is " + argument + ", no share from 0 to 1; all is kept");
      return Sampler.alwaysOn();
    }
  }
}
