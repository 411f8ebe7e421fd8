package dev.ldfi.fit;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/**
 * A kind of fault: how a call fails, as its caller sees it. It begins with a word, and for some words an argument
 * follows: "refused", "status:503". {@code kinds.json} has what is known of each, for all languages; fit/protocol/kinds.py
 * says what its fields mean.
 */
public final class Kind {
  private static final Map<String, Kind> ALL = Collections.unmodifiableMap(read());

  /** The latest version of failure contexts. */
  static final int LATEST = ALL.values().stream().mapToInt(kind -> kind.version).max().getAsInt();

  /** The first version of failure contexts that can say it. */
  public final int version;

  /** Whether it takes its time, so that a context says how long. */
  public final boolean late;

  /** Whether its call goes well in the end. */
  public final boolean outlasted;

  /** Whether it needs an answer that has a body. */
  public final boolean body;

  /** Whether it happens only where a host has a name. */
  public final boolean named;

  /** The status of the answer of HTTP that it is; 0 for none. */
  public final int status;

  /** Bytes of its answer's body that never come. */
  public final int missing;

  /** What Java and its libraries make of a connection that cannot be made so; empty for what is none. */
  public final Map<String, String> connecting;

  private final Collection<?> points;
  private final String answer; // of which each character is a byte; null for none
  private final Predicate<String> takes; // null where it stands alone

  private Kind(Map<String, Object> record) {
    Map<String, Object> answers = member(record, "answer");
    this.version = number(record, "version");
    this.late = record.containsKey("late");
    this.outlasted = record.containsKey("outlasted");
    this.body = record.containsKey("body");
    this.named = record.containsKey("named");
    this.status = number(record, "status");
    this.missing = number(answers, "missing");
    Map<String, String> said = new LinkedHashMap<>();
    member(member(record, "connecting"), "java").forEach((what, text) -> said.put(what, (String) text));
    this.connecting = Collections.unmodifiableMap(said);
    this.points = (Collection<?>) record.get("points");
    this.answer = (String) answers.get("body");
    this.takes = form(member(record, "argument"));
  }

  private static Map<String, Kind> read() {
    Map<String, Kind> kinds = new LinkedHashMap<>();
    member(object(Json.read(text())), "kinds").forEach((word, record) -> kinds.put(word, new Kind(object(record))));
    return kinds;
  }

  private static String text() {
    try (InputStream in = Kind.class.getResourceAsStream("kinds.json")) {
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      byte[] some = new byte[8192];
      for (int read = in.read(some); read >= 0; read = in.read(some)) {
        all.write(some, 0, read);
      }
      return new String(all.toByteArray(), StandardCharsets.UTF_8);
    } catch (IOException unreadable) {
      throw new UncheckedIOException(unreadable);
    }
  }

  @SuppressWarnings("unchecked") // of JSON, where all keys are text
  private static Map<String, Object> object(Object json) {
    return (Map<String, Object>) json;
  }

  private static Map<String, Object> member(Map<String, Object> of, String name) {
    return object(of.getOrDefault(name, Collections.emptyMap()));
  }

  private static int number(Map<String, Object> of, String name) {
    return ((Number) of.getOrDefault(name, 0)).intValue();
  }

  /** What an argument has to be. Lengths are read by edges, and never sent. */
  private static Predicate<String> form(Map<String, Object> argument) {
    if (argument.isEmpty() || argument.containsKey("optional")) {
      return null;
    }
    if (argument.containsKey("pattern")) {
      Pattern pattern = Pattern.compile((String) argument.get("pattern"));
      return text -> pattern.matcher(text).matches();
    }
    return ((List<?>) argument.getOrDefault("among", Collections.emptyList()))::contains;
  }

  /** What is known of a kind, by the word with which it begins; null for what is none. */
  public static Kind of(String kind) {
    return ALL.get(word(kind));
  }

  /** The words of all that a call by this protocol can have, as {@code points} has it. */
  public static Collection<String> words(String protocol) {
    List<String> words = new ArrayList<>(ALL.keySet());
    words.removeIf(word -> !ALL.get(word).points.contains(protocol));
    return words;
  }

  /** Whether text is a kind, less what says how long it lasts. */
  public static boolean is(String text) {
    Kind found = of(text);
    int colon = text.indexOf(':');
    return found != null && (colon < 0 ? found.standsAlone() : found.takes(text.substring(colon + 1)));
  }

  /** The word with which a kind begins. */
  public static String word(String kind) {
    int colon = kind.indexOf(':');
    return colon < 0 ? kind : kind.substring(0, colon);
  }

  /** Whether no argument has to follow. */
  public boolean standsAlone() {
    return takes == null;
  }

  /** Whether it can go on with this argument. */
  boolean takes(String argument) {
    return takes != null && takes.test(argument);
  }

  /** The body of its answer; null where it is none with a body of its own. */
  public byte[] answer() {
    return answer == null ? null : answer.getBytes(StandardCharsets.ISO_8859_1);
  }

  /** Whether it is a connection to this host that cannot be made; an address has no name that could not resolve. */
  public boolean isUnconnected(String host) {
    return !connecting.isEmpty() && (!named || Points.isName(host));
  }
}
