package io.opentelemetry.javaagent.ldfi.methods;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The methods that the property {@code ldfi.methods} names, or LDFI_METHODS: "com.shop.Prices[price,total];…". */
final class NamedMethods {
  private static final Logger LOGGER = Logger.getLogger(NamedMethods.class.getName());
  private static final Pattern ONE = Pattern.compile("\\s*([\\w.$]+)\\s*\\[\\s*([\\w$]+(?:\\s*,\\s*[\\w$]+)*)\\s*\\]\\s*");

  private NamedMethods() {}

  static Map<String, String[]> configured() {
    String said = System.getProperty("ldfi.methods", System.getenv("LDFI_METHODS"));
    return read(said == null ? "" : said);
  }

  /** By the names of their classes. What cannot be read is said, and left out. */
  static Map<String, String[]> read(String text) {
    Map<String, String[]> found = new LinkedHashMap<>();
    for (String each : text.split(";")) {
      Matcher one = ONE.matcher(each);
      if (one.matches()) {
        found.put(one.group(1), one.group(2).split("\\s*,\\s*"));
      } else if (!each.trim().isEmpty()) {
        LOGGER.log(
            Level.WARNING,
            "ldfi.methods: \"" + each.trim() + "\" names no methods; write com.shop.Prices[price,total]");
      }
    }
    return found;
  }
}
