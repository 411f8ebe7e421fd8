package dev.ldfi.fit.edge;

import dev.ldfi.fit.FailureContext;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Refused;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/**
 * What a service is sent with a request.
 *
 * @param contexts the experiments of its failure contexts; of one that does not verify, the context itself
 * @param others the rest of the baggage
 */
public record Sent(List<String> contexts, String others, boolean sampled) {
  /** Reads the values of the headers {@code baggage} and {@code traceparent}. */
  public static Sent of(Keys keys, String baggage, String traceparent) {
    BaggageHeader read = new BaggageHeader(baggage);
    List<String> contexts = new ArrayList<>();
    for (String each : read.values) {
      try {
        contexts.add(FailureContext.read(keys, each, Instant.now()).experiment);
      } catch (Refused refused) {
        contexts.add(each);
      }
    }
    return new Sent(contexts, read.others, traceparent.endsWith("-01"));
  }

  /** Returns the experiment that stands for a scenario on this device. */
  public static String scenarioOf(String device) {
    return Edge.scenarioOf(device);
  }
}
