package dev.ldfi.fit;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The vectors that every language is held against. */
public final class Vectors {
  private Vectors() {}

  public static JsonObject of(String file) throws IOException {
    return JsonParser.parseString(Files.readString(Path.of("..", "protocol", "vectors", file))).getAsJsonObject();
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
