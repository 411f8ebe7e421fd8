package io.opentelemetry.javaagent.ldfi;

import static io.opentelemetry.api.common.AttributeKey.longKey;
import static io.opentelemetry.api.common.AttributeKey.stringKey;

import dev.ldfi.fit.Points;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.util.Locale;
import java.util.function.Supplier;

/**
 * The point of a call, from the attributes with which the agent began its span. The lineage reads the same
 * attributes from the exported span (lineage/naming.py), so both ends agree by construction.
 */
final class Names {
  private Names() {}

  /**
   * The name of the point of a call by HTTP; null where the span does not say what is called.
   *
   * @param method what it is by now, where it may have changed since the span began; else null
   */
  static String http(String service, ReadableSpan span, Supplier<String> method) {
    String began = first(span, "http.request.method", "http.method");
    return began.isEmpty() ? null : http(service, span, method == null ? began : method.get());
  }

  /** The name of the point of a statement; null where the span is not of one. */
  static String statement(String service, ReadableSpan span) {
    String system = first(span, "db.system.name", "db.system");
    if (system.isEmpty()) {
      return null;
    }
    String text = text(span);
    String verb = Points.verb(text);
    String table = Points.table(text);
    if (verb.isEmpty()) { // "(select …" has none, and "{call …" neither
      verb = table;
      table = "";
    }
    String operation = Points.templateWords(first(span, "db.operation.name", "db.operation"));
    if (operation.isEmpty() || operation.split(" ")[0].toUpperCase(Locale.ROOT).equals(verb)) {
      operation = verb.isEmpty() ? span.getName().split(" ")[0] : verb;
    }
    String told = Points.templateWords(first(span, "db.sql.table", "db.collection.name"));
    if (!told.isEmpty()) {
      table = told;
    } else if (table.isEmpty() && verb.isEmpty()) {
      table = besides(operation, span.getName());
    }
    String database = Points.templateWords(first(span, "db.namespace", "db.name"));
    if (database.isEmpty() && system.equals("redis")) { // it has no names but its hosts'
      database = address(span);
    }
    String peer = first(span, "peer.service", "service.peer.name");
    boolean named = !database.replace("*", "").isEmpty();
    return Points.database(service, operation, table, !peer.isEmpty() ? peer : named ? database : system);
  }

  /** The name of the point of a remote procedure call; null where the span does not say what is called. */
  static String rpc(String service, ReadableSpan span) {
    String method = first(span, "rpc.method");
    if (method.isEmpty()) {
      return null;
    }
    String within = first(span, "rpc.service");
    String called = within.isEmpty() ? method : within + "/" + method.substring(method.lastIndexOf('/') + 1);
    String peer = Points.templateWords(first(span, "peer.service", "service.peer.name"));
    return Points.rpc(service, called, peer.isEmpty() ? address(span) : peer);
  }

  /** The verb of the statement that the span is of; empty where it does not say. */
  static String verb(ReadableSpan span) {
    return Points.verb(text(span));
  }

  private static String text(ReadableSpan span) {
    String text = first(span, "db.statement", "db.query.text");
    boolean says = !Points.verb(text).isEmpty() || !Points.table(text).isEmpty();
    return says ? text : first(span, "db.query.summary");
  }

  /** What a span's name says besides the operation, where it has no statement. */
  private static String besides(String operation, String name) {
    String words = Points.templateWords(name);
    return words.startsWith(operation) ? words.substring(operation.length()).trim() : words;
  }

  private static String http(String service, ReadableSpan span, String method) {
    String url = first(span, "url.full", "http.url");
    int begins = url.indexOf("://");
    if (begins < 0) {
      return null;
    }
    String rest = url.substring(begins + 3);
    int ends = 0;
    while (ends < rest.length() && "/?#".indexOf(rest.charAt(ends)) < 0) {
      ends++;
    }
    String authority = rest.substring(0, ends);
    authority = authority.substring(authority.lastIndexOf('@') + 1);
    int colon = authority.lastIndexOf(':');
    boolean hasPort = colon > authority.lastIndexOf(']') && colon < authority.length() - 1;
    String host = hasPort || colon == authority.length() - 1 && colon >= 0 ? authority.substring(0, colon) : authority;
    int port = hasPort ? Integer.parseInt(authority.substring(colon + 1)) : 0;
    return Points.http(service, method, host, port, rest.substring(ends), first(span, "url.template"));
  }

  private static String address(ReadableSpan span) {
    Long port = span.getAttribute(longKey("server.port"));
    return Points.address(first(span, "server.address"), port == null ? 0 : port.intValue());
  }

  private static String first(ReadableSpan span, String... names) {
    for (String name : names) {
      String found = span.getAttribute(stringKey(name));
      if (found != null) {
        return found;
      }
    }
    return "";
  }
}
