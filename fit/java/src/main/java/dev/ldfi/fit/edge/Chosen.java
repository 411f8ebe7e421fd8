package dev.ldfi.fit.edge;

import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Which headers, cookies and entries of the baggage spans shall tell of, as in "header.x-plan,cookie.ab". */
final class Chosen {
  private static final Logger LOGGER = Logger.getLogger(Chosen.class.getName());
  private static final int MOST = 20; // more of them would be a user, not a kind of request
  private static final Pattern NAME =
      Pattern.compile("(?:header|cookie|baggage)\\.[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}");
  private static final Pattern SECRET =
      Pattern.compile(
          "auth|cookie|token|secret|session|passw|api-?key|credential", Pattern.CASE_INSENSITIVE);

  private Chosen() {}

  /** Reads a list; what carries credentials, or is none of these, is left out with a warning. */
  static Set<String> read(String text) {
    TreeSet<String> found = new TreeSet<>();
    for (String part : text.split(",")) {
      String each = part.trim();
      String name = each.substring(each.indexOf('.') + 1);
      if (each.isEmpty()) {
        continue;
      }
      if (!NAME.matcher(each).matches() || SECRET.matcher(name).find()) {
        LOGGER.log(
            Level.WARNING,
            "FIT_FEATURES names {0}, which is no feature that can be chosen",
            Text.cut(each, 80));
      } else {
        found.add(each.startsWith("header.") ? each.toLowerCase(Locale.ROOT) : each);
      }
    }
    return found.stream().limit(MOST).collect(Collectors.toCollection(LinkedHashSet::new));
  }
}
