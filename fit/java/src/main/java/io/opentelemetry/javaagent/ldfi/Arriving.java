package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.edge.Arrived;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * What a propagator was given to read, until it is known whether it is a request that has come in: its headers, in
 * whichever server's form.
 */
final class Arriving<C> {
  private static final ContextKey<Arriving<?>> KEY = ContextKey.named("ldfi-fit-arriving");

  private C carrier; // null once it was taken: contexts live longer than requests
  private final TextMapGetter<C> getter;

  private Arriving(C carrier, TextMapGetter<C> getter) {
    this.carrier = carrier;
    this.getter = getter;
  }

  static <C> Context leave(Context context, C carrier, TextMapGetter<C> getter) {
    return carrier == null || getter == null ? context : context.with(KEY, new Arriving<>(carrier, getter));
  }

  /** The one that was left, for those who have not let go of it; null for none. */
  static Arriving<?> in(Context context) {
    Arriving<?> found = context.get(KEY);
    return found == null || found.carrier == null ? null : found;
  }

  void letGo() {
    carrier = null;
  }

  /** All values of one header, joined by commas as RFC 9110, section 5.3 allows; empty without it. */
  String header(String name) {
    return String.join(",", values(name));
  }

  List<String> values(String name) {
    List<String> values = new ArrayList<>();
    getter.getAll(carrier, name).forEachRemaining(values::add);
    return values;
  }

  /** The address of the connection; empty where the agent takes what proxies say for it, whoever says so. */
  String peer(Attributes began) {
    String connection = told(began, "network.peer.address");
    boolean isSaid = !header("forwarded").isEmpty() || !header("x-forwarded-for").isEmpty();
    return !connection.isEmpty() ? connection : isSaid ? "" : told(began, "client.address");
  }

  /** The request as it arrives, by what its span has been told of it. */
  Arrived request(Attributes began) {
    List<Map.Entry<String, String>> headers = new ArrayList<>();
    for (String name : getter.keys(carrier)) {
      Iterator<String> values = getter.getAll(carrier, name);
      while (values.hasNext()) {
        headers.add(new SimpleImmutableEntry<>(name.toLowerCase(Locale.ROOT), values.next()));
      }
    }
    String method = told(began, "http.request.method_original");
    return new Arrived(
        method.isEmpty() ? told(began, "http.request.method") : method,
        told(began, "url.path"),
        told(began, "url.query"),
        headers);
  }

  private static String told(Attributes began, String name) {
    String found = began.get(AttributeKey.stringKey(name));
    return found == null ? "" : found;
  }
}
