package dev.ldfi.fit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class HostsTest {
  @Test
  void contextsGoToTheHostsOfTheVectors() throws IOException {
    List<JsonElement> cases = Vectors.list(Vectors.of("hosts.json"), "cases");
    List<JsonElement> wrong = new ArrayList<>();
    for (JsonElement each : cases) {
      JsonElement hosts = each.getAsJsonObject().get("hosts");
      boolean allowed = Hosts.parse(hosts.isJsonNull() ? null : hosts.getAsString()).allow(Vectors.text(each, "host"));
      if (allowed != each.getAsJsonObject().get("allowed").getAsBoolean()) {
        wrong.add(each);
      }
    }
    assertEquals(List.of(), wrong);
    assertTrue(cases.size() > 300);
  }

  @Test
  void whatIsNoHostIsNamed() {
    assertEquals(List.of("https://a.com/", "! b..c"), Hosts.parse("https://a.com/, a.com, ! b..c").ignored());
  }
}
