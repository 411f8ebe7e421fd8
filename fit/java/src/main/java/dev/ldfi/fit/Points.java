package dev.ldfi.fit;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import java.util.Locale;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Names of injection points, by the rules of docs/failure-context.md. */
public final class Points {
  private static final int MAX_NAME = 240; // code points
  private static final int USUAL_NAME = 96; // characters that few names are longer than
  private static final int SHORTEST_WITHOUT_DIGIT = 26; // of what is an identifier all the same
  private static final int HASHED = 6; // bytes

  /** What stays of the characters beyond ASCII: ranges, for each language has a Unicode of its own. */
  private static final String LETTERS =
      "\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{2070}-\\x{2fff}\\x{3001}-\\x{d7ff}"
          + "\\x{f900}-\\x{fefe}\\x{ff00}-\\x{ffef}\\x{10000}-\\x{dffff}";

  private static final Pattern UNSAFE = Pattern.compile("[^A-Za-z0-9._~*{}$()!,;=@+" + LETTERS + "-]+");
  private static final Pattern UNSAFE_TEMPLATE =
      Pattern.compile("[^A-Za-z0-9._~*{}$()!,;=@+/:" + LETTERS + "-]+");
  private static final Pattern PLACEHOLDER =
      Pattern.compile("\\{[^}/]*\\}|<[^>/]*>|(?<=/):[A-Za-z_][\\p{L}\\p{N}_]*");
  private static final Pattern IPV4 = Pattern.compile("\\d{1,3}(\\.\\d{1,3}){3}");
  private static final Pattern ESCAPE = Pattern.compile("%[0-9A-Fa-f]{2}");
  private static final Pattern COMMENT =
      Pattern.compile("^\\s*(?:/\\*.*?\\*/|--[^\\n]*\\n)", Pattern.DOTALL);
  private static final Pattern VERB = Pattern.compile("^\\s*([a-zA-Z]+)");
  private static final Pattern TABLE =
      Pattern.compile(
          "\\b(?:from|into|update|table|join)\\s+[`\"\\[]?([A-Za-z0-9_.$" + LETTERS + "-]+)",
          Pattern.CASE_INSENSITIVE);
  private static final Pattern SPACE = Pattern.compile("\\s+", Pattern.UNICODE_CHARACTER_CLASS);

  private Points() {}

  /** Eight characters that stand for a point's name: SHA-256, first 48 bits, base64url. */
  public static String hash(String name) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(name.getBytes(StandardCharsets.UTF_8));
      return Base64.getUrlEncoder().encodeToString(Arrays.copyOf(digest, HASHED));
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException("every Java has SHA-256", missing);
    }
  }

  /**
   * Names an outgoing HTTP call: "api>http:GET:ratings/titles/*".
   *
   * @param port 0 where the URL names none
   * @param path as it goes over the wire
   * @param template the value of url.template where the caller knows it, else empty
   */
  public static String http(
      String caller, String method, String host, int port, String path, String template) {
    int told = port == 80 || port == 443 ? 0 : port; // some clients write it out, some do not
    String route = template.isEmpty() ? templatePath(path) : templateRoute(template);
    return point(caller, "http", method.toUpperCase(Locale.ROOT), address(host, told), route);
  }

  /** Names a remote procedure call by its full method: "api>rpc:Get:prices/shop.Prices". */
  public static String rpc(String caller, String fullMethod, String peer) {
    String bare = stripped(fullMethod, "/");
    int slash = bare.lastIndexOf('/');
    String service = slash < 0 ? "" : bare.substring(0, slash);
    return point(caller, "rpc", bare.substring(slash + 1), authority(peer), asPath(service));
  }

  /** Names a statement by its verb and its table, at a database: "api>db:SELECT:shop/titles". */
  public static String database(String caller, String statement, String database) {
    return database(caller, verb(statement), table(statement), database);
  }

  /** Names a statement of which verb and table are known. */
  public static String database(String caller, String verb, String table, String database) {
    return point(caller, "db", verb, database, asPath(table));
  }

  /** Names the opening of a connection to a database: "api>db:connect:shop". */
  public static String connection(String caller, String database) {
    return point(caller, "db", "connect", database, "");
  }

  /** Names a command to a server like Redis: "api>db:GET:sessions". */
  public static String command(String caller, String command, String host, int port) {
    return point(caller, "db", verb(command), address(host, port), "");
  }

  /** Names a produced message: "api>message:send:kafka/plays". */
  public static String message(String caller, String operation, String system, String destination) {
    return point(caller, "message", operation, system, asPath(templateWords(destination)));
  }

  /** Names a method of a class: "api>method:price:com.shop.Prices". */
  public static String method(String caller, String method, String type) {
    return point(caller, "method", method, type, "");
  }

  /** All points of a caller that are of one kind, as a pattern: "api>http:*". */
  public static String all(String caller, String kind) {
    return point(caller, kind, "*", "", "");
  }

  private static String point(String caller, String kind, String operation, String peer, String template) {
    String name = clean(caller);
    StringBuilder made = new StringBuilder(USUAL_NAME);
    made.append(name.isEmpty() ? "unknown" : name);
    made.append('>').append(kind).append(':').append(clean(operation));
    String path = isPlain(template, "/:") ? template : UNSAFE_TEMPLATE.matcher(template).replaceAll("_");
    if (!peer.isEmpty() || !path.isEmpty()) {
      made.append(':').append(isPlain(peer, ":") ? peer : cleanParts(peer));
      made.append(path.isEmpty() || path.startsWith("/") ? "" : "/").append(path);
    }
    if (made.codePointCount(0, made.length()) > MAX_NAME) {
      made.setLength(made.offsetByCodePoints(0, MAX_NAME));
    }
    return made.toString();
  }

  private static String cleanParts(String peer) {
    String[] parts = peer.split(":", -1);
    for (int i = 0; i < parts.length; i++) {
      parts[i] = clean(parts[i]);
    }
    return String.join(":", parts);
  }

  private static String clean(String text) {
    return isPlain(text, "") ? text : UNSAFE.matcher(text).replaceAll("_");
  }

  /** Whether all of a text is what stays of ASCII in any name: patterns need not be asked then, which take longer. */
  private static boolean isPlain(String text, String besides) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (!isLetter(c) && !Words.isDigit(c) && "-._~*".indexOf(c) < 0 && besides.indexOf(c) < 0) {
        return false;
      }
    }
    return true;
  }

  private static boolean isLetter(char c) {
    return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z';
  }

  /**
   * Names a host as a caller does. The port counts only where the host is an address: behind a name it is
   * a detail of deployment, on loopback it is all that tells servers apart.
   */
  public static String address(String host, int port) {
    String bare = stripped(isLower(host) ? host : lower(host), "[]");
    boolean numeric = bare.equals("localhost") || bare.indexOf(':') >= 0 || isIpv4(bare);
    return numeric && port != 0 ? bare + ":" + port : bare;
  }

  private static boolean isLower(String host) {
    for (int i = 0; i < host.length(); i++) {
      if ('A' <= host.charAt(i) && host.charAt(i) <= 'Z') {
        return false;
      }
    }
    return !host.endsWith(".");
  }

  /** In lower case, as far as it is ASCII, and without dots at its end. */
  private static String lower(String host) {
    StringBuilder lower = new StringBuilder(host);
    for (int i = 0; i < lower.length(); i++) {
      char c = lower.charAt(i);
      lower.setCharAt(i, 'A' <= c && c <= 'Z' ? (char) (c - 'A' + 'a') : c);
    }
    while (lower.length() > 0 && lower.charAt(lower.length() - 1) == '.') {
      lower.setLength(lower.length() - 1);
    }
    return lower.toString();
  }

  /** Whether a host is given by its name, and not by an address. */
  static boolean isName(String host) {
    return !host.isEmpty() && host.indexOf(':') < 0 && !isIpv4(host);
  }

  private static boolean isIpv4(String host) {
    return !host.isEmpty() && Words.isDigit(host.charAt(0)) && IPV4.matcher(host).matches();
  }

  private static String authority(String peer) {
    int colon = peer.lastIndexOf(':');
    String port = peer.substring(colon + 1);
    boolean named = colon >= 0 && !port.isEmpty() && port.length() <= 5 && Words.isDigits(port);
    return named ? address(peer.substring(0, colon), Integer.parseInt(port)) : address(peer, 0);
  }

  private static String stripped(String text, String of) {
    int from = 0;
    int to = text.length();
    while (from < to && of.indexOf(text.charAt(from)) >= 0) {
      from++;
    }
    while (from < to && of.indexOf(text.charAt(to - 1)) >= 0) {
      to--;
    }
    return text.substring(from, to);
  }

  private static String asPath(String text) {
    if (text.isEmpty()) {
      return "";
    }
    String bare = text;
    while (bare.startsWith("/")) {
      bare = bare.substring(1);
    }
    return templated("/" + bare, Points::isIdentifier);
  }

  /** Replaces the identifiers in a URL's path with "*"; drops query and fragment. */
  public static String templatePath(String path) {
    return templated(path, segment -> !isAscii(segment) || isIdentifier(segment));
  }

  private static String templated(String path, Predicate<String> isIdentifier) {
    String[] segments = before(before(path, '?'), '#').split("/", -1);
    for (int i = 0; i < segments.length; i++) {
      if (!segments[i].isEmpty() && isIdentifier.test(segments[i])) {
        segments[i] = "*";
      }
    }
    String joined = String.join("/", segments);
    return joined.isEmpty() ? "/" : joined;
  }

  private static String before(String text, char end) {
    int at = text.indexOf(end);
    return at < 0 ? text : text.substring(0, at);
  }

  private static boolean isIdentifier(String segment) {
    return !isWord(segment) && (Words.isDigits(segment) && !segment.isEmpty() || isIdentifierByPattern(segment));
  }

  /** Whether it is short and of letters and dashes alone: every pattern of those below wants more. */
  static boolean isWord(String segment) {
    for (int i = 0; i < segment.length(); i++) {
      char c = segment.charAt(i);
      if (!isLetter(c) && c != '-' && c != '_' && c != '.') {
        return false;
      }
    }
    return segment.length() < SHORTEST_WITHOUT_DIGIT;
  }

  static boolean isIdentifierByPattern(String segment) {
    return ESCAPE.matcher(segment).find() || Identifiers.isIdentifier(segment);
  }

  private static boolean isAscii(String text) {
    for (int i = 0; i < text.length(); i++) {
      if (text.charAt(i) >= 0x80) {
        return false;
      }
    }
    return true;
  }

  /** Brings a framework's route ("/users/{id}", "/users/&lt;int:id>", "/users/:id") to our form. */
  private static String templateRoute(String route) {
    return PLACEHOLDER.matcher(before(route, '?')).replaceAll("*");
  }

  /** The verb of a statement, in upper case; empty where it has none. */
  public static String verb(String statement) {
    Matcher found = VERB.matcher(withoutComments(statement));
    return found.find() ? found.group(1).toUpperCase(Locale.ROOT) : "";
  }

  /** The table of a statement; empty where it has none. */
  public static String table(String statement) {
    Matcher found = TABLE.matcher(withoutComments(statement));
    return found.find() ? found.group(1) : "";
  }

  private static String withoutComments(String statement) {
    String rest = statement;
    for (Matcher found = COMMENT.matcher(rest); found.find(); found = COMMENT.matcher(rest)) {
      rest = rest.substring(found.end());
    }
    return rest;
  }

  /** Wildcards the identifiers in a name made of words and paths. */
  public static String templateWords(String text) {
    String[] words = SPACE.split(text.trim());
    for (int i = 0; i < words.length; i++) {
      words[i] = templateWord(words[i]);
    }
    return String.join(" ", words);
  }

  private static String templateWord(String word) {
    if (word.indexOf('/') >= 0) {
      return templatePath(word);
    }
    String[] parts = word.split("\\.", -1);
    for (int i = 0; i < parts.length; i++) {
      String path = asPath(parts[i]);
      parts[i] = path.isEmpty() ? "" : path.substring(1);
    }
    return String.join(".", parts);
  }
}
