package dev.ldfi.fit;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** How a call fails, as its caller sees it, in the words of marks and rules: "refused", "status:503". */
public final class Kind {
  /** The latest version of failure contexts. */
  static final int LATEST = 4;

  private static final int MAX_EXCEPTION = 40; // characters of an exception's name
  private static final Set<String> ALONE = words("error refused unresolved reset empty truncated corrupt");
  private static final Set<String> LASTING = words("delay timeout");
  private static final Set<String> GRPC =
      words(
          "CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED"
              + " RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL"
              + " UNAVAILABLE DATA_LOSS UNAUTHENTICATED");
  private static final Set<String> SQL = words("deadlock serialization lost readonly");
  private static final Set<String> REDIS = words("loading readonly lost");

  private Kind() {}

  private static Set<String> words(String text) {
    return new HashSet<>(Arrays.asList(text.split(" ")));
  }

  /** Whether text is a kind, less what says how long it lasts. */
  public static boolean is(String text) {
    int colon = text.indexOf(':');
    return standsAlone(text)
        || LASTING.contains(text)
        || colon >= 0 && takes(text.substring(0, colon), text.substring(colon + 1));
  }

  static boolean standsAlone(String word) {
    return ALONE.contains(word);
  }

  /** Whether a length in milliseconds belongs to it. */
  static boolean lasts(String word) {
    return LASTING.contains(word) || word.equals("slow");
  }

  /** The first version of failure contexts, from 2 on, that can say a kind which begins with word. */
  public static int since(String word) {
    return word.equals("unresolved") ? LATEST : word.equals("slow") ? 3 : 2;
  }

  /** Whether a kind that begins with word can go on with this argument. */
  static boolean takes(String word, String argument) {
    switch (word) {
      case "status":
        return argument.length() == 3
            && Words.isDigits(argument)
            && (argument.charAt(0) == '4' || argument.charAt(0) == '5');
      case "grpc":
        return GRPC.contains(argument);
      case "sql":
        return SQL.contains(argument);
      case "redis":
        return REDIS.contains(argument);
      case "exception":
        return Words.isName(argument, MAX_EXCEPTION)
            && argument.indexOf('-') < 0
            && !Words.isDigit(argument.charAt(0));
      default:
        return false;
    }
  }
}
