package io.opentelemetry.javaagent.ldfi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ldfi.fit.Points;
import java.util.List;
import org.junit.jupiter.api.Test;

class KnownTest {
  private final Known points = new Known();

  private static List<String> get(String url) {
    return List.of("http", "GET", url, "");
  }

  @Test
  void whatIsTheSameHasOneName() {
    Known.Point made = points.of("shop", get("http://ratings/titles/17"));
    assertEquals("shop>http:GET:ratings/titles/*", made.name);
    assertEquals(Points.hash(made.name), made.hash);
    assertSame(made, points.of("shop", get("http://ratings/titles/17")));
    assertEquals("shop>http:POST:ratings/", points.of("shop", List.of("http", "POST", "http://ratings/", "")).name);
    assertEquals("shop>rpc:Get:prices/shop.Prices", points.of("shop", List.of("rpc", "Get", "shop.Prices", "", "prices")).name);
  }

  @Test
  void callsOfOneNameAreOnePoint() {
    assertSame(points.of("shop", get("http://ratings/titles/17")), points.of("shop", get("http://ratings/titles/18")));
  }

  @Test
  void whatNamesNothingIsRememberedToo() {
    assertNull(points.of("shop", get("nowhere")));
    assertNull(points.of("shop", get("nowhere")));
    assertEquals(1, points.size());
  }

  @Test
  void itIsBounded() {
    for (int i = 0; i < 3 * Known.REMEMBERED; i++) {
      assertEquals("shop>http:GET:ratings/titles/*", points.of("shop", get("http://ratings/titles/" + i)).name);
      assertTrue(points.size() <= Known.REMEMBERED);
    }
    int before = points.size();
    points.of("shop", get("http://ratings/" + "x".repeat(2000)));
    assertEquals(before, points.size());
  }
}
