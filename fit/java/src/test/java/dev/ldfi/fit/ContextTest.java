package dev.ldfi.fit;

import static dev.ldfi.fit.Vectors.list;
import static dev.ldfi.fit.Vectors.number;
import static dev.ldfi.fit.Vectors.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ContextTest {
  private static final String SECRET = "0123456789abcdef";
  private static final String ALPHABET =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-";
  private static final Keys KEYS = Keys.parse("k1:" + SECRET);
  private static final Keys OTHER = Keys.parse("k1:not-the-right-key");

  private static Instant at(BigDecimal seconds) {
    long whole = seconds.longValue();
    return Instant.ofEpochSecond(
        whole, seconds.subtract(BigDecimal.valueOf(whole)).movePointRight(9).longValue());
  }

  private static String result(Keys keys, String value, Instant now) {
    try {
      FailureContext.read(keys, value, now);
      return "accepted";
    } catch (Refused refused) {
      return refused.reason.name().toLowerCase(Locale.ROOT);
    }
  }

  @Test
  void contextsAreReadAsTheVectorsSay() throws IOException, Refused {
    List<JsonElement> cases = list(Vectors.of("contexts.json"), "cases");
    assertTrue(cases.size() >= 200, cases.size() + " cases");
    for (JsonElement each : cases) {
      Keys keys = Keys.parse(text(each, "keys"));
      Instant now = at(each.getAsJsonObject().get("now").getAsBigDecimal());
      String value = text(each, "value");
      assertEquals(text(each, "result"), result(keys, value, now), text(each, "name"));
      JsonObject wanted = each.getAsJsonObject().getAsJsonObject("context");
      if (wanted != null) {
        assertIs(wanted, FailureContext.read(keys, value, now), text(each, "name"));
      }
    }
  }

  private static void assertIs(JsonObject wanted, FailureContext read, String name) {
    assertEquals(text(wanted, "experiment"), read.experiment, name);
    assertEquals(text(wanted, "arm"), read.arm(), name);
    assertEquals(wanted.get("expires").getAsLong(), read.expires.getEpochSecond(), name);
    assertEquals(list(wanted, "faults").size(), read.injections.size(), name);
    for (JsonElement fault : list(wanted, "faults")) {
      Injection found = read.injections.get(text(fault, "hash"));
      assertEquals(text(fault, "kind"), found.kind, name);
      assertEquals(number(fault, "delay_ms"), found.longest, name);
      assertEquals(number(fault, "first"), found.first, name);
    }
  }

  @Test
  void keysAreReadAsTheVectorsSay() throws IOException {
    JsonObject vectors = Vectors.of("contexts.json");
    for (JsonElement each : list(vectors, "readable_keys")) {
      List<String> ids = Keys.parse(text(each, "text")).ids();
      assertEquals(text(each, "signing"), ids.get(0));
      assertEquals(
          list(each.getAsJsonObject(), "ids").stream().map(JsonElement::getAsString).toList(), ids);
    }
    for (JsonElement each : list(vectors, "unreadable_keys")) {
      assertThrows(IllegalArgumentException.class, () -> Keys.parse(each.getAsString()), each::toString);
    }
  }

  @Test
  void noTextShowsASecret() {
    assertEquals("Keys[k1]", KEYS.toString());
    for (String wrong : List.of("k1:" + SECRET + ",k1:" + SECRET, SECRET, "k1:short-secret", "k 1:" + SECRET)) {
      String message =
          assertThrows(IllegalArgumentException.class, () -> Keys.parse(wrong)).getMessage();
      assertFalse(message.contains(SECRET) || message.contains("short-secret"), message);
    }
  }

  private static String signed(Keys keys, String payload) {
    return payload + "." + keys.sign(payload);
  }

  private static String oneGroup(Keys keys, String how, String point, String arm, Instant expires) {
    String payload =
        String.format("2.k1.e7c1.%s.%d.%s~%s", arm, expires.getEpochSecond(), how, Points.hash(point));
    return signed(keys, payload);
  }

  @Test
  void ofTenThousandForgeriesNoneIsObeyed() {
    Instant now = Instant.now();
    Random draw = new Random(6);
    List<String> kinds = List.of("error", "status-503-n2", "refused", "delay-1500");
    int count = 0;
    while (count < 10_000) {
      String how = kinds.get(draw.nextInt(kinds.size()));
      String point = "p" + draw.nextInt(500);
      String good = oneGroup(KEYS, how, point, draw.nextBoolean() ? "t" : "c", now.plusSeconds(60));
      assertEquals("accepted", result(KEYS, good, now));
      String letter = String.valueOf(ALPHABET.charAt(draw.nextInt(ALPHABET.length())));
      int cut = draw.nextInt(good.length());
      String payload = good.substring(0, good.lastIndexOf('.'));
      for (String forged :
          List.of(
              good.substring(0, cut) + letter + good.substring(cut + 1),
              good.substring(0, cut) + good.substring(cut + 1),
              good.substring(0, cut) + letter + good.substring(cut),
              good.substring(0, cut),
              good + letter,
              good.replace(".e7c1.", ".e7c2."),
              signed(OTHER, payload),
              signed(KEYS, payload.replace(".k1.", ".k2.")),
              oneGroup(KEYS, how, point, "t", now.minusSeconds(draw.nextInt(3600))),
              good + letter.repeat(5000))) {
        if (!forged.equals(good)) {
          count++;
          assertFalse(result(KEYS, forged, now).equals("accepted"), forged);
        }
      }
    }
  }

  @Test
  void kindsAreThoseOfAllLanguages() throws IOException {
    String own = Files.readString(Path.of("src", "main", "resources", "dev", "ldfi", "fit", "kinds.json"));
    assertEquals(Files.readString(Path.of("..", "protocol", "kinds.json")), own, "run docs/generate.py");
  }

  @Test
  void anExpiryHasNoTolerance() {
    Instant ends = Instant.ofEpochSecond(1060);
    String value = oneGroup(KEYS, "refused", "p", "t", ends);
    assertEquals("accepted", result(KEYS, value, ends.minusNanos(1)));
    assertEquals("expired", result(KEYS, value, ends));
  }
}
