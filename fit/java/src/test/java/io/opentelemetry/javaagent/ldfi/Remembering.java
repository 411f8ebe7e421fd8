package io.opentelemetry.javaagent.ldfi;

import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** An extension of the tests' own: ended spans are found by the application, in the properties of the system. */
public final class Remembering implements AutoConfigurationCustomizerProvider {
  /** Where they are: a queue of maps, of attributes and what begins with a dot. */
  public static final String SPANS = "ldfi.test.spans";

  @Override
  public void customize(AutoConfigurationCustomizer configuration) {
    Queue<Map<String, String>> spans = new ConcurrentLinkedQueue<>();
    System.getProperties().put(SPANS, spans);
    configuration.addTracerProviderCustomizer(
        (provider, properties) ->
            provider.addSpanProcessor(SimpleSpanProcessor.create(new Exporter(spans))));
  }

  private record Exporter(Queue<Map<String, String>> spans) implements SpanExporter {
    @Override
    public CompletableResultCode export(Collection<SpanData> ended) {
      for (SpanData each : ended) {
        Map<String, String> told = new HashMap<>();
        each.getAttributes().forEach((key, value) -> told.put(key.getKey(), String.valueOf(value)));
        each.getEvents().stream()
            .filter(event -> event.getName().startsWith("fit."))
            .forEach(event -> told.put(".event", event.getName()));
        told.put(".trace", each.getTraceId());
        told.put(".kind", each.getKind().name());
        told.put(".name", each.getName());
        told.put(".status", each.getStatus().getStatusCode().name());
        told.put(".began", String.valueOf(each.getStartEpochNanos()));
        spans.add(told);
      }
      return CompletableResultCode.ofSuccess();
    }

    @Override
    public CompletableResultCode flush() {
      return CompletableResultCode.ofSuccess();
    }

    @Override
    public CompletableResultCode shutdown() {
      return CompletableResultCode.ofSuccess();
    }
  }
}
