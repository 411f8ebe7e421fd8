package dev.ldfi.fit.edge;

import dev.ldfi.fit.Hosts;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Tells which device a request comes from: the first of the sources of {@code FIT_DEVICE} that it has, as
 * fit/device.py does. It is held against fit/protocol/vectors/devices.json.
 */
public final class Devices {
  private static final Logger LOGGER = Logger.getLogger(Devices.class.getName());
  private static final Pattern SOURCE =
      Pattern.compile("(?:(header|cookie|baggage):([A-Za-z0-9!#$%&'*+.^_`|~-]{1,64})|address)");
  private static final int LONGEST = 1024; // characters of an id; what is longer is none
  private static final int MOST = 20; // addresses of proxies that are gone through

  private final List<Matcher> sources = new ArrayList<>();
  private final Hosts trusted;
  private final boolean isEverybody; // then also a connection without an address, such as a Unix socket

  /** Reads the environment; what is no source is left out. */
  public Devices(Map<String, String> environment) {
    for (String each : environment.getOrDefault("FIT_DEVICE", "header:x-device-id").split(",")) {
      String said = trimmed(each);
      Matcher source = SOURCE.matcher(said);
      if (source.matches()) {
        sources.add(source);
      } else if (!said.isEmpty()) {
        LOGGER.log(
            Level.SEVERE, "FIT_DEVICE names {0}: write header:NAME, cookie:NAME, baggage:KEY or address", said);
      }
    }
    String believed = environment.getOrDefault("FORWARDED_ALLOW_IPS", "127.0.0.1");
    this.trusted = Hosts.parse(believed + ",!*");
    this.isEverybody = parts(Collections.singletonList(believed), ",").contains("*");
  }

  /** By what devices are told apart, without names. */
  String kinds() {
    Set<String> kinds = new LinkedHashSet<>();
    sources.forEach(each -> kinds.add(each.group(1) == null ? "address" : each.group(1)));
    return String.join(",", kinds);
  }

  /**
   * The device of a request; empty where nobody knows.
   *
   * @param values gives the values of all headers of a name in small letters, in their order
   * @param peer the address of the connection, with or without a port
   */
  public String of(Function<String, List<String>> values, Supplier<String> peer) {
    for (Matcher each : sources) {
      String found = found(each, values, peer);
      if (!found.isEmpty() && found.codePointCount(0, found.length()) <= LONGEST) {
        return found;
      }
    }
    return "";
  }

  private String found(Matcher source, Function<String, List<String>> values, Supplier<String> peer) {
    String name = source.group(2);
    switch (source.group(1) == null ? "address" : source.group(1)) {
      case "header":
        return values.apply(name.toLowerCase(Locale.ROOT)).stream()
            .map(Devices::trimmed)
            .filter(value -> !value.isEmpty())
            .collect(Collectors.joining(","));
      case "cookie":
        return cookie(name, values.apply("cookie"));
      case "baggage":
        return entry(name, values.apply("baggage"));
      default:
        return written(origin(peer.get(), parts(values.apply("x-forwarded-for"), ",")));
    }
  }

  /** Whose request it is: past the proxies that are trusted, from the nearest one on; null for nobody knows. */
  private String origin(String peer, List<String> forwarded) {
    String at = Hosts.address(peer);
    boolean isBelieved = at == null ? isEverybody : trusted.allow(at);
    int last = Math.max(0, forwarded.size() - MOST);
    for (int next = forwarded.size() - 1; next >= last && isBelieved; next--) {
      at = Hosts.address(forwarded.get(next));
      isBelieved = at != null && trusted.allow(at);
    }
    return at;
  }

  /** An address as an id; of IPv6 the first half, since the other half changes from day to day. */
  private static String written(String address) {
    boolean isLong = address != null && address.indexOf(':') >= 0;
    return isLong ? String.join(":", Arrays.copyOf(address.split(":"), 4)) + "::/64" : address == null ? "" : address;
  }

  /** The first cookie of a name that has a value, without the quotes around it. */
  private static String cookie(String name, List<String> headers) {
    for (String pair : parts(headers, ";")) {
      int is = pair.indexOf('=');
      String value = is < 0 ? "" : trimmed(pair.substring(is + 1));
      if (value.length() > 1 && value.startsWith("\"") && value.endsWith("\"")) {
        value = value.substring(1, value.length() - 1);
      }
      if (!value.isEmpty() && trimmed(pair.substring(0, is)).equals(name)) {
        return value;
      }
    }
    return "";
  }

  /** The first entry of the baggage of a key that has a value, decoded. */
  private static String entry(String name, List<String> headers) {
    for (String member : parts(headers, ",")) {
      String pair = member.split(";", 2)[0];
      int is = pair.indexOf('=');
      String value = is < 0 ? "" : trimmed(pair.substring(is + 1));
      if (!value.isEmpty() && trimmed(pair.substring(0, is)).equals(name)) {
        return Text.unquoted(value);
      }
    }
    return "";
  }

  /** What stands between separators in headers, without what is empty. */
  private static List<String> parts(List<String> headers, String separator) {
    List<String> found = new ArrayList<>();
    for (String header : headers) {
      for (String each : header.split(separator)) {
        String part = trimmed(each);
        if (!part.isEmpty()) {
          found.add(part);
        }
      }
    }
    return found;
  }

  private static String trimmed(String text) {
    int from = 0;
    int to = text.length();
    while (from < to && isBlank(text.charAt(from))) {
      from++;
    }
    while (from < to && isBlank(text.charAt(to - 1))) {
      to--;
    }
    return text.substring(from, to);
  }

  private static boolean isBlank(char letter) {
    return letter == ' ' || letter == '\t';
  }
}
