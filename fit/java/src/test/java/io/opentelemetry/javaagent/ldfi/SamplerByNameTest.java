package io.opentelemetry.javaagent.ldfi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.opentelemetry.sdk.autoconfigure.spi.internal.DefaultConfigProperties;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SamplerByNameTest {
  private static Sampler told(Map<String, String> properties) {
    return new SamplerByName().createSampler(DefaultConfigProperties.createFromMap(properties));
  }

  private static void assertKeeps(Sampler root, Sampler made) {
    assertEquals(Sampler.parentBased(root).getDescription(), made.getDescription());
  }

  @Test
  void itKeepsTheShareThatItIsTold() {
    assertEquals("fit", new SamplerByName().getName());
    assertKeeps(Sampler.alwaysOn(), told(Map.of()));
    assertKeeps(Sampler.traceIdRatioBased(0.25), told(Map.of("otel.traces.sampler.arg", "0.25")));
  }

  @Test
  void whatIsNoShareKeepsAll() {
    for (String strange : new String[] {"", "all", "1.5", "-1"}) {
      assertKeeps(Sampler.alwaysOn(), told(Map.of("otel.traces.sampler.arg", strange)));
    }
  }
}
