package io.opentelemetry.javaagent.ldfi;

import static io.opentelemetry.api.common.AttributeKey.stringKey;

import dev.ldfi.fit.Points;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.javaagent.extension.AgentListener;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Says which points this process can make fail, as a span of no request now and then: campaigns propose nothing else.
 * A kind of point is reached from when a library that makes such calls is loaded.
 */
public final class Reach implements AgentListener {
  /** The name of the span, and of its attribute. */
  static final String NAME = "fit.reach";

  /** What its own spans are of: whoever reports libraries reports it. */
  private static final String OWN = "fit";

  static final String VERSION = "0.2.0";

  private static final AttributeKey<String> SAID = stringKey(NAME);
  private static final long SETTLED = 3; // seconds: libraries are loaded one after the other
  private static final long EVERY = 300;

  /** What is behind the caller's name: "http|delay,refused" for all points by HTTP. */
  private static final Set<String> REACHED = ConcurrentHashMap.newKeySet();

  /** The libraries whose calls these are, by the names in the scopes of the agent's spans. */
  private static final Set<String> LIBRARIES = ConcurrentHashMap.newKeySet();

  private static final Semaphore MORE = new Semaphore(0);

  /** Notes that a library's points, of a kind, can be made to fail, in ways of these words, between commas. */
  static void noted(String kind, String words, String library) {
    if (REACHED.add(kind + "|" + words) | LIBRARIES.add(library)) {
      MORE.release();
    }
  }

  @Override
  public void afterAgent(AutoConfiguredOpenTelemetrySdk configured) {
    if (Start.gate() == null || !Agent.isSupported(Agent.version())) {
      return;
    }
    Tracer tracer = configured.getOpenTelemetrySdk().getTracer("fit");
    Thread thread = new Thread(() -> reporting(tracer), "ldfi-fit-reach");
    thread.setDaemon(true);
    thread.start();
  }

  private static void reporting(Tracer tracer) {
    try {
      while (true) {
        TimeUnit.SECONDS.sleep(SETTLED);
        MORE.drainPermits();
        report(tracer);
        MORE.tryAcquire(EVERY, TimeUnit.SECONDS);
      }
    } catch (InterruptedException ends) {
      Thread.currentThread().interrupt();
    }
  }

  private static void report(Tracer tracer) {
    if (REACHED.isEmpty()) {
      return;
    }
    Span span = tracer.spanBuilder(NAME).setParent(Context.root()).startSpan();
    if (span instanceof ReadableSpan) {
      span.setAttribute(SAID, said(Gate.named((ReadableSpan) span), REACHED, LIBRARIES));
    }
    span.end();
  }

  /** The report of a service, as docs/failure-context.md has it. */
  static String said(String service, Set<String> reached, Set<String> libraries) {
    StringBuilder said = new StringBuilder("1 java/").append(VERSION);
    for (String each : new TreeSet<>(reached)) {
      int bar = each.indexOf('|');
      said.append(' ').append(Points.all(service, each.substring(0, bar))).append(each.substring(bar));
    }
    String all = Points.all(service, "library");
    Set<String> held = new TreeSet<>(libraries);
    held.add(OWN);
    for (String library : held) {
      said.append(' ').append(all, 0, all.length() - 1).append(library);
    }
    return said.toString();
  }
}
