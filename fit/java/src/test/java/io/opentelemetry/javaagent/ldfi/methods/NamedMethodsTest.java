package io.opentelemetry.javaagent.ldfi.methods;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class NamedMethodsTest {
  @Test
  void methodsAreNamedByClass() {
    Map<String, String[]> read = NamedMethods.read(" com.shop.Prices[price, total];com.shop.Stock$One[ left ] ;");
    assertEquals(Set.of("com.shop.Prices", "com.shop.Stock$One"), read.keySet());
    assertArrayEquals(new String[] {"price", "total"}, read.get("com.shop.Prices"));
    assertArrayEquals(new String[] {"left"}, read.get("com.shop.Stock$One"));
  }

  @Test
  void whatCannotBeReadIsLeftOut() {
    assertEquals(Set.of("com.shop.Prices"), NamedMethods.read("com.shop.Prices[price];com.shop.Stock;[x];a[];b[c d]").keySet());
    assertEquals(Set.of(), NamedMethods.read("").keySet());
  }
}
