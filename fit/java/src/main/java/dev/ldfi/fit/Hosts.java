package dev.ldfi.fit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * To which hosts a failure context may be sent: private ones, and those that {@code FIT_HOSTS} lists. It is specified in
 * docs/failure-context.md, and held against fit/protocol/vectors/hosts.json.
 */
public final class Hosts {
  public static final String VARIABLE = "FIT_HOSTS";

  /**
   * What is private, besides names of one label: names that nobody can register (RFC 6761, 6762 and 8375, ICANN's
   * .internal; .svc and .lan, which no registry sells), and the addresses of RFC 1122, 1918, 3927, 6598, 4193, 4291.
   */
  private static final String PRIVATE =
      "*.localhost,*.test,*.local,*.home.arpa,*.internal,*.svc,*.lan,"
          + "0.0.0.0,127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,100.64.0.0/10,"
          + "::,::1,fc00::/7,fe80::/10";

  private static final int ASKED = 4096; // hosts whose answers are remembered at once
  private static final int LONGEST = 253; // characters of a name

  private static final Pattern NAME = Pattern.compile("[a-z0-9_-]{1,63}(?:\\.[a-z0-9_-]{1,63})*");
  private static final Pattern NUMBER = Pattern.compile("(?:.*\\.)?(?:[0-9]+|0x[0-9a-f]*)");
  private static final Pattern IPV6 =
      Pattern.compile("(?:\\[([0-9a-f:.]*:[0-9a-f:.]*)(?:%[a-z0-9._~-]+)?]|([0-9a-f:.]*:[0-9a-f:.]*)(?:%[a-z0-9._~-]+)?)");
  private static final Pattern DECIMAL = Pattern.compile("0|[1-9][0-9]{0,2}");
  private static final Pattern GROUP = Pattern.compile("[0-9a-f]{1,4}");
  private static final Pattern PORT = Pattern.compile("([^:]*|\\[.*]):[0-9]{1,5}");
  private static final Pattern PATTERN = Pattern.compile("[a-z0-9_*-]+(?:\\.[a-z0-9_*-]+)*");
  private static final Pattern DIGITS = Pattern.compile("[0-9.*]*");
  private static final List<Entry> PRIVATE_ENTRIES = listed(PRIVATE, new ArrayList<>());

  private final List<String> ignored = new ArrayList<>();
  private final List<Entry> entries;
  private final boolean isNobody; // the variable is set, and empty
  private final Map<String, Boolean> asked = new ConcurrentHashMap<>();

  private Hosts(String text) {
    this.entries = text == null ? Collections.emptyList() : listed(text, ignored);
    this.isNobody = text != null && entries.isEmpty() && ignored.isEmpty();
  }

  /** Reads what the variable says; null where it is not set. */
  public static Hosts parse(String text) {
    return new Hosts(text);
  }

  /** The entries that are no host, pattern or network, and are ignored. */
  public List<String> ignored() {
    return Collections.unmodifiableList(ignored);
  }

  /** Whether a failure context may be sent to a host, by name or address, without its port; empty: nobody knows which. */
  public boolean allow(String host) {
    Boolean known = asked.get(host);
    if (known == null) {
      known = allow(Host.read(host));
      if (asked.size() >= ASKED) {
        asked.clear();
      }
      asked.put(host, known);
    }
    return known;
  }

  /** An address as it is compared, given with or without a port and brackets; null for anything else. */
  public static String address(String text) {
    Matcher port = PORT.matcher(text);
    Host read = Host.read(port.matches() ? port.group(1) : text);
    if (read.address == null || read.address.length == 4) {
      return read.address == null ? null : read.dotted();
    }
    StringBuilder groups = new StringBuilder();
    for (int at = 0; at < 16; at += 2) {
      int group = (read.address[at] & 0xff) << 8 | read.address[at + 1] & 0xff;
      groups.append(at == 0 ? "" : ":").append(Integer.toHexString(group));
    }
    return groups.toString();
  }

  private boolean allow(Host host) {
    for (Entry each : entries) {
      if (each.fits.test(host)) {
        return each.isAllowing;
      }
    }
    return !isNobody && isPrivate(host);
  }

  private static boolean isPrivate(Host host) {
    boolean isLabel = host.name != null && host.name.indexOf('.') < 0;
    return isLabel || PRIVATE_ENTRIES.stream().anyMatch(each -> each.fits.test(host));
  }

  /** Whom an entry fits, and whether it allows or forbids. */
  private static final class Entry {
    final Predicate<Host> fits;
    final boolean isAllowing;

    Entry(Predicate<Host> fits, boolean isAllowing) {
      this.fits = fits;
      this.isAllowing = isAllowing;
    }
  }

  /** A host as it was read: a name or an address, or neither for any other spelling. */
  private static final class Host {
    static final Host STRANGER = new Host(null, null);

    final String name;
    final byte[] address;

    private Host(String name, byte[] address) {
      this.name = name;
      this.address = address;
    }

    static Host read(String text) {
      String bare = lower(text);
      Matcher ipv6 = IPV6.matcher(bare);
      if (ipv6.matches()) {
        return at(unmapped(ipv6(ipv6.group(1) == null ? ipv6.group(2) : ipv6.group(1))));
      }
      bare = bare.endsWith(".") ? bare.substring(0, bare.length() - 1) : bare;
      byte[] ipv4 = ipv4(bare);
      if (ipv4 != null) {
        return at(ipv4);
      }
      boolean isName = bare.length() <= LONGEST && NAME.matcher(bare).matches() && !NUMBER.matcher(bare).matches();
      return isName ? new Host(bare, null) : STRANGER;
    }

    private static Host at(byte[] address) {
      return address == null ? STRANGER : new Host(null, address);
    }

    boolean isSame(Host other) {
      return name != null ? name.equals(other.name) : Arrays.equals(address, other.address);
    }

    boolean isWithin(byte[] network, int bits) {
      if (address == null || address.length != network.length) {
        return false;
      }
      for (int at = 0; at < bits; at++) {
        if (((address[at / 8] ^ network[at / 8]) >> (7 - at % 8) & 1) != 0) {
          return false;
        }
      }
      return true;
    }

    /** An address of four numbers as it is written; empty for any other. */
    String dotted() {
      if (address == null || address.length != 4) {
        return "";
      }
      return (address[0] & 0xff) + "." + (address[1] & 0xff) + "." + (address[2] & 0xff) + "." + (address[3] & 0xff);
    }
  }

  private static List<Entry> listed(String text, List<String> ignored) {
    List<Entry> entries = new ArrayList<>();
    for (String each : text.split(",")) {
      String entry = each.trim();
      if (entry.isEmpty()) {
        continue;
      }
      boolean isForbidding = entry.startsWith("!");
      Predicate<Host> fits = entry(lower(isForbidding ? entry.substring(1).trim() : entry));
      if (fits == null) {
        ignored.add(entry);
      } else {
        entries.add(new Entry(fits, !isForbidding));
      }
    }
    return entries;
  }

  /** Whom an entry fits: *, a network, an address or a name, or a pattern of one; null for none of these. */
  private static Predicate<Host> entry(String listed) {
    if (listed.indexOf('/') >= 0) {
      return network(listed);
    }
    Matcher port = PORT.matcher(listed);
    String text = port.matches() ? port.group(1) : listed;
    if (text.equals("*")) {
      return host -> true;
    }
    Host known = Host.read(text);
    if (known != Host.STRANGER) {
      return known::isSame;
    }
    text = text.endsWith(".") ? text.substring(0, text.length() - 1) : text;
    return text.indexOf('*') >= 0 && PATTERN.matcher(text).matches() ? pattern(text) : null;
  }

  private static Predicate<Host> network(String text) {
    int slash = text.indexOf('/');
    String bits = text.substring(slash + 1);
    byte[] network = ipv4(text.substring(0, slash));
    network = network == null ? ipv6(text.substring(0, slash)) : network;
    if (network == null || !DECIMAL.matcher(bits).matches() || Integer.parseInt(bits) > network.length * 8) {
      return null;
    }
    byte[] within = network;
    int same = Integer.parseInt(bits);
    return host -> host.isWithin(within, same);
  }

  /**
   * Of digits it fits addresses only, or 10.* would fit 10.evil.com; else a * that does not come first stays within its
   * label.
   */
  private static Predicate<Host> pattern(String text) {
    if (DIGITS.matcher(text).matches()) {
      Pattern digits = stars(text, ".*");
      return host -> digits.matcher(host.dotted()).matches();
    }
    boolean isBelow = text.startsWith("*");
    Pattern name = Pattern.compile((isBelow ? ".*" : "") + stars(isBelow ? text.substring(1) : text, "[^.]*"));
    return host -> host.name != null && name.matcher(host.name).matches();
  }

  private static Pattern stars(String text, String each) {
    return Pattern.compile(text.replace(".", "\\.").replace("*", each));
  }

  /** Leaves letters beyond ASCII as they are: none of them becomes one of a host's. */
  private static String lower(String text) {
    StringBuilder lower = new StringBuilder(text);
    for (int at = 0; at < text.length(); at++) {
      char letter = text.charAt(at);
      if (letter >= 'A' && letter <= 'Z') {
        lower.setCharAt(at, (char) (letter + 'a' - 'A'));
      }
    }
    return lower.toString();
  }

  /** Four decimal numbers without leading zeros; null for what is not that. */
  private static byte[] ipv4(String text) {
    String[] parts = text.split("\\.", -1);
    byte[] address = new byte[4];
    for (int at = 0; at < parts.length; at++) {
      if (parts.length != 4 || !DECIMAL.matcher(parts[at]).matches() || Integer.parseInt(parts[at]) > 255) {
        return null;
      }
      address[at] = (byte) Integer.parseInt(parts[at]);
    }
    return address;
  }

  private static byte[] ipv6(String text) {
    int gap = text.indexOf("::");
    if (gap < 0) {
      byte[] whole = groups(text, true);
      return whole != null && whole.length == 16 ? whole : null;
    }
    byte[] head = groups(text.substring(0, gap), false);
    byte[] tail = groups(text.substring(gap + 2), true);
    if (text.indexOf("::", gap + 1) >= 0 || head == null || tail == null || head.length + tail.length > 14) {
      return null;
    }
    byte[] address = Arrays.copyOf(head, 16);
    System.arraycopy(tail, 0, address, 16 - tail.length, tail.length);
    return address;
  }

  /** The bytes of groups between colons, the last of which may be an IPv4 address; null for what is not that. */
  private static byte[] groups(String text, boolean isLast) {
    String[] parts = text.isEmpty() ? new String[0] : text.split(":", -1);
    byte[] bytes = new byte[2 * parts.length + 2];
    int length = 0;
    for (int at = 0; at < parts.length; at++) {
      byte[] ipv4 = isLast && at == parts.length - 1 ? ipv4(parts[at]) : null;
      if (ipv4 != null) {
        System.arraycopy(ipv4, 0, bytes, length, 4);
        length += 4;
      } else if (GROUP.matcher(parts[at]).matches()) {
        int group = Integer.parseInt(parts[at], 16);
        bytes[length++] = (byte) (group >> 8);
        bytes[length++] = (byte) group;
      } else {
        return null;
      }
    }
    return Arrays.copyOf(bytes, length);
  }

  /** The IPv4 address that one of IPv6 stands for (::ffff:10.0.0.1); else the same. */
  private static byte[] unmapped(byte[] address) {
    if (address == null) {
      return null;
    }
    for (int at = 0; at < 12; at++) {
      if (address[at] != (byte) (at < 10 ? 0 : 0xff)) {
        return address;
      }
    }
    return Arrays.copyOfRange(address, 12, 16);
  }
}
