package io.opentelemetry.javaagent.ldfi;

import static dev.ldfi.fit.Vectors.list;
import static dev.ldfi.fit.Vectors.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import dev.ldfi.fit.Vectors;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

class MarkingTest {
  @Test
  void marksSayWhatTheVectorsSay() throws IOException {
    List<JsonElement> read =
        list(Vectors.of("marks.json"), "cases").stream()
            .filter(each -> !each.getAsJsonObject().get("read").isJsonNull())
            .toList();
    assertTrue(read.size() > 2, read.size() + " marks");
    for (JsonElement each : read) {
      JsonElement of = each.getAsJsonObject().get("read");
      String said =
          Marking.said(
              text(of, "arm"), text(of, "experiment"), text(of, "instance"), text(of, "kind"), text(of, "point"));
      assertEquals(text(each, "text"), said);
    }
  }
}
