package io.opentelemetry.javaagent.ldfi;

import static io.opentelemetry.api.common.AttributeKey.longKey;

import dev.ldfi.fit.Points;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * The point of a call, from the attributes with which the agent began its span. The lineage reads the same
 * attributes from the exported span (lineage/naming.py), so both ends agree by construction. What of a span a name is
 * made of is read first: calls of which it is the same have one name, and it need not be made again.
 */
final class Names {
  private static final String HTTP = "http";
  private static final String STATEMENT = "statement";
  private static final String RPC = "rpc";
  private static final String MESSAGE = "message";

  /** What the name of a call of a method begins with, before the method and its class. */
  static final String METHOD = "method";

  private static final Map<String, AttributeKey<String>> KEYS = new ConcurrentHashMap<>(); // costly to make

  private Names() {}

  /**
   * What the name of a call by HTTP is made of.
   *
   * @param method what it is by now, where it may have changed since the span began; else null
   */
  static List<String> http(ReadableSpan span, Supplier<String> method) {
    String began = first(span, "http.request.method", "http.method");
    String now = method == null || began.isEmpty() ? began : method.get();
    return Arrays.asList(HTTP, now, first(span, "url.full", "http.url"), first(span, "url.template"));
  }

  /** What the name of a remote procedure call is made of. */
  static List<String> rpc(ReadableSpan span) {
    return Arrays.asList(RPC, first(span, "rpc.method"), first(span, "rpc.service"), peer(span), address(span));
  }

  /** What the name of a message that is produced is made of. */
  static List<String> message(ReadableSpan span) {
    return Arrays.asList(
        MESSAGE,
        first(span, "messaging.system"),
        first(span, "messaging.operation.type", "messaging.operation"),
        first(span, "messaging.destination.template", "messaging.destination.name", "messaging.destination"));
  }

  /** What the name of asking Kafka for messages of these topics is made of. */
  static List<String> receiving(String topics) {
    return Arrays.asList(MESSAGE, "kafka", "receive", topics);
  }

  /** What the name of a statement, or a command, is made of. */
  static List<String> statement(ReadableSpan span) {
    return Arrays.asList(
        STATEMENT,
        first(span, "db.system.name", "db.system"),
        first(span, "db.statement", "db.query.text"),
        first(span, "db.query.summary"),
        first(span, "db.operation.name", "db.operation"),
        first(span, "db.sql.table", "db.collection.name"),
        first(span, "db.namespace", "db.name"),
        peer(span),
        address(span),
        span.getName());
  }

  /** The name made of that; null where it does not say what is called. */
  static String made(String service, List<String> of) {
    switch (of.get(0)) {
      case HTTP:
        return of.get(1).isEmpty() ? null : http(service, of.get(1), of.get(2), of.get(3));
      case RPC:
        return of.get(1).isEmpty() ? null : rpc(service, of.get(1), of.get(2), of.get(3), of.get(4));
      case MESSAGE:
        return of.get(1).isEmpty() ? null : message(service, of.get(1), of.get(2), of.get(3));
      case METHOD:
        return Points.method(service, of.get(1), of.get(2));
      default:
        return of.get(1).isEmpty() ? null : statement(service, of);
    }
  }

  private static String rpc(String service, String method, String within, String named, String address) {
    String called = within.isEmpty() ? method : within + "/" + method.substring(method.lastIndexOf('/') + 1);
    String peer = Points.templateWords(named);
    return Points.rpc(service, called, peer.isEmpty() ? address : peer);
  }

  private static String message(String service, String system, String operation, String destination) {
    return Points.message(service, operation.isEmpty() ? "send" : operation, system, destination);
  }

  private static String statement(String service, List<String> of) {
    String system = of.get(1);
    String text = text(of.get(2), of.get(3));
    String name = of.get(9);
    String verb = Points.verb(text);
    String table = Points.table(text);
    if (verb.isEmpty()) { // "(select …" has none, and "{call …" neither
      verb = table;
      table = "";
    }
    String operation = Points.templateWords(of.get(4));
    if (operation.isEmpty() || operation.split(" ")[0].toUpperCase(Locale.ROOT).equals(verb)) {
      operation = verb.isEmpty() ? name.split(" ")[0] : verb;
    }
    String told = Points.templateWords(of.get(5));
    if (!told.isEmpty()) {
      table = told;
    } else if (table.isEmpty() && verb.isEmpty()) {
      table = besides(operation, name);
    }
    String database = Points.templateWords(of.get(6));
    boolean named = !database.replace("*", "").isEmpty();
    if (!named && system.equals("redis")) { // it has no names but its hosts': databases in it are numbers
      database = of.get(8);
      named = !database.isEmpty();
    }
    String peer = of.get(7);
    return Points.database(service, operation, table, !peer.isEmpty() ? peer : named ? database : system);
  }

  /** The verb of the statement that the span is of; empty where it does not say. */
  static String verb(ReadableSpan span) {
    return Points.verb(text(first(span, "db.statement", "db.query.text"), first(span, "db.query.summary")));
  }

  private static String text(String statement, String summary) {
    boolean says = !Points.verb(statement).isEmpty() || !Points.table(statement).isEmpty();
    return says ? statement : summary;
  }

  /** What a span's name says besides the operation, where it has no statement. */
  private static String besides(String operation, String name) {
    String words = Points.templateWords(name);
    return words.startsWith(operation) ? words.substring(operation.length()).trim() : words;
  }

  private static String http(String service, String method, String url, String template) {
    int begins = url.indexOf("://");
    if (begins < 0) {
      return null;
    }
    String rest = url.substring(begins + 3);
    String sent = authority(rest);
    String authority = sent.substring(sent.lastIndexOf('@') + 1);
    String host = host(authority);
    String port = authority.substring(host.length());
    int number = port.length() > 1 ? Integer.parseInt(port.substring(1)) : 0;
    return Points.http(service, method, host, number, rest.substring(sent.length()), template);
  }

  /** The host that a call goes to, without a port; empty where its span does not say. */
  static String hostOf(ReadableSpan span) {
    String url = first(span, "url.full", "http.url");
    return url.isEmpty() ? first(span, "server.address") : hostOf(url);
  }

  /** The host of a URL, without its port; empty where it has none. */
  static String hostOf(String url) {
    int begins = url.indexOf("://");
    String sent = begins < 0 ? "" : authority(url.substring(begins + 3));
    return host(sent.substring(sent.lastIndexOf('@') + 1));
  }

  /** What of a URL stands before its path, behind its scheme. */
  private static String authority(String rest) {
    int ends = 0;
    while (ends < rest.length() && "/?#".indexOf(rest.charAt(ends)) < 0) {
      ends++;
    }
    return rest.substring(0, ends);
  }

  private static String host(String authority) {
    int colon = authority.lastIndexOf(':');
    return colon > authority.lastIndexOf(']') ? authority.substring(0, colon) : authority;
  }

  private static String peer(ReadableSpan span) {
    return first(span, "peer.service", "service.peer.name");
  }

  private static String address(ReadableSpan span) {
    Long port = span.getAttribute(longKey("server.port"));
    return Points.address(first(span, "server.address"), port == null ? 0 : port.intValue());
  }

  private static String first(ReadableSpan span, String... names) {
    for (String name : names) {
      AttributeKey<String> key = KEYS.get(name);
      String found = span.getAttribute(key == null ? keyOf(name) : key);
      if (found != null) {
        return found;
      }
    }
    return "";
  }

  private static AttributeKey<String> keyOf(String name) {
    return KEYS.computeIfAbsent(name, AttributeKey::stringKey);
  }
}
