package dev.ldfi.fit;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Predicate;

/** The vectors that every language is held against. */
public final class Vectors {
  private Vectors() {}

  public static JsonObject of(String file) throws IOException {
    return JsonParser.parseString(Files.readString(Path.of("..", "protocol", "vectors", file))).getAsJsonObject();
  }

  /** The kinds that are a connection that cannot be made, of those that calls by this protocol can have. */
  public static List<String> connecting(String protocol) {
    return words(protocol, of -> of.has("connecting"));
  }

  /** The words of kinds that calls by this protocol can have, of which this is so, in their order. */
  public static List<String> words(String protocol, Predicate<JsonObject> and) {
    try {
      JsonObject kinds = of("../kinds.json").getAsJsonObject("kinds");
      return kinds.keySet().stream()
          .filter(word -> kinds.getAsJsonObject(word).get("points").getAsJsonArray().contains(new JsonPrimitive(protocol)))
          .filter(word -> and.test(kinds.getAsJsonObject(word)))
          .sorted()
          .toList();
    } catch (IOException missing) {
      throw new UncheckedIOException(missing);
    }
  }

  public static List<JsonElement> list(JsonObject of, String name) {
    JsonArray found = of.getAsJsonArray(name);
    return found.asList();
  }

  public static String text(JsonElement of, String name) {
    JsonElement found = of.getAsJsonObject().get(name);
    return found == null || found.isJsonNull() ? "" : found.getAsString();
  }

  public static int number(JsonElement of, String name) {
    JsonElement found = of.getAsJsonObject().get(name);
    return found == null || found.isJsonNull() ? 0 : found.getAsInt();
  }
}
