package dev.ldfi.fit.edge;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** The kind of device that a request comes from, by its User-Agent: the table of fit/protocol/device_type.py. */
final class DeviceType {
  private static final int LONGEST = 512; // characters; whatever follows is a stranger's text
  private static final Map<String, Pattern> TABLE = new LinkedHashMap<>();
  private static final Pattern RUNS_TIZEN = words("tizen|samsung");

  static {
    TABLE.put("bot", words("bot\\b|bot/|crawl|spider|slurp|headless|lighthouse|monitor|^curl/|^wget/"));
    TABLE.put("console", words("playstation|xbox|nintendo"));
    TABLE.put(
        "tv",
        words(
            "smart-?tv|smarttv|\\btv\\b|googletv|apple ?tv|appletv|android tv|hbbtv|netcast|web0s|webos|tizen|bravia"
                + "|roku|\\baft[a-z]|crkey|chromecast|viera|aquos"));
    TABLE.put("tablet", words("ipad|tablet|kindle|silk/|playbook|android(?![^\\n]*\\bmobile\\b)"));
    TABLE.put(
        "phone", words("iphone|ipod|\\bmobile\\b|mobile/|windows phone|opera mini|cfnetwork|okhttp|dalvik"));
    TABLE.put("desktop", words("windows nt|macintosh|x11|cros |linux x86_64|electron"));
  }

  private DeviceType() {}

  private static Pattern words(String pattern) {
    return Pattern.compile(pattern, Pattern.CASE_INSENSITIVE);
  }

  static String of(String agent) {
    String text = asciiWords(Text.cut(agent, LONGEST));
    if (RUNS_TIZEN.matcher(text).find() && text.contains("Mobile")) {
      return "phone"; // phones and watches run Tizen, too
    }
    for (Map.Entry<String, Pattern> each : TABLE.entrySet()) {
      if (each.getValue().matcher(text).find()) {
        return each.getKey();
      }
    }
    return "other";
  }

  /** Puts "_" for letters of other alphabets: where words end is not the same in every Java. */
  private static String asciiWords(String text) {
    StringBuilder words = new StringBuilder();
    text.codePoints()
        .forEach(c -> words.appendCodePoint(c < 0x80 ? c : isLetterOrNumber(c) ? '_' : ' '));
    return words.toString();
  }

  static boolean isLetterOrNumber(int c) {
    return Character.isLetterOrDigit(c)
        || Character.getType(c) == Character.LETTER_NUMBER
        || Character.getType(c) == Character.OTHER_NUMBER;
  }
}
