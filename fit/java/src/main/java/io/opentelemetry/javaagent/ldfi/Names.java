package io.opentelemetry.javaagent.ldfi;

import static io.opentelemetry.api.common.AttributeKey.stringKey;

import dev.ldfi.fit.Points;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.util.function.Supplier;

/**
 * The point of a call, from the attributes with which the agent began its span. The lineage reads the same
 * attributes from the exported span (lineage/naming.py), so both ends agree by construction.
 */
final class Names {
  private Names() {}

  /**
   * The name of the point; null where the span does not say what is called.
   *
   * @param method of a call by HTTP, where it may have changed since the span began; else null
   */
  static String of(String service, ReadableSpan span, Supplier<String> method) {
    String began = first(span, "http.request.method", "http.method");
    return began.isEmpty() ? null : http(service, span, method == null ? began : method.get());
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
