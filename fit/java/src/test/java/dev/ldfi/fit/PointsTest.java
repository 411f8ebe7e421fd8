package dev.ldfi.fit;

import static dev.ldfi.fit.Vectors.list;
import static dev.ldfi.fit.Vectors.number;
import static dev.ldfi.fit.Vectors.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.util.Random;
import org.junit.jupiter.api.Test;

class PointsTest {
  /** The name of a point of which that is known which stands in a vector. */
  static String name(String kind, JsonElement known) {
    String caller = text(known, "caller");
    switch (kind) {
      case "http":
        return Points.http(
            caller,
            text(known, "method"),
            text(known, "host"),
            number(known, "port"),
            text(known, "path"),
            text(known, "template"));
      case "rpc":
        return Points.rpc(caller, text(known, "method"), text(known, "peer"));
      case "db":
        return Points.database(caller, text(known, "statement"), text(known, "peer"));
      case "connect":
        return Points.connection(caller, text(known, "peer"));
      case "command":
        return Points.command(caller, text(known, "command"), text(known, "host"), number(known, "port"));
      case "message":
        return Points.message(
            caller, text(known, "operation"), text(known, "system"), text(known, "destination"));
      default:
        throw new IllegalArgumentException(kind);
    }
  }

  @Test
  void pointsAreNamedAsTheVectorsSay() throws IOException {
    JsonObject vectors = Vectors.of("points.json");
    int count = 0;
    for (String kind : vectors.keySet()) {
      if (kind.equals("about") || kind.equals("hashes")) {
        continue;
      }
      for (JsonElement each : list(vectors, kind)) {
        String name = name(kind, each);
        assertEquals(text(each, "name"), name);
        assertEquals(text(each, "hash"), Points.hash(name));
        count++;
      }
    }
    assertTrue(count >= 150, count + " names");
  }

  @Test
  void hashesAreThoseOfTheVectors() throws IOException {
    for (JsonElement each : list(Vectors.of("points.json"), "hashes")) {
      assertEquals(text(each, "hash"), Points.hash(text(each, "name")));
    }
  }

  /** Of words nobody asks the patterns: they would say the same. */
  @Test
  void whatIsNoIdentifierAtFirstSightIsNone() {
    Random drawn = new Random(17);
    String letters = "abcdefgABZ-_.";
    for (int i = 0; i < 20_000; i++) {
      StringBuilder segment = new StringBuilder();
      for (int length = 1 + drawn.nextInt(36); segment.length() < length; ) {
        segment.append(letters.charAt(drawn.nextInt(drawn.nextBoolean() ? letters.length() : 6)));
      }
      String text = segment.toString();
      if (Points.isWord(text)) {
        assertFalse(Points.isIdentifierByPattern(text), text);
      }
    }
    assertTrue(Points.isWord("a".repeat(25)));
    assertFalse(Points.isWord("A".repeat(26)));
    assertTrue(Points.isIdentifierByPattern("A".repeat(26)));
    for (String number : new String[] {"0", "17", "0".repeat(60)}) {
      assertTrue(Points.isIdentifierByPattern(number), number);
    }
  }
}
