package io.opentelemetry.javaagent.ldfi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

class InsideTest {
  private static class Outer {
    @SuppressWarnings("unused") // but by its name
    private final Object inner;

    Outer(Object inner) {
      this.inner = inner;
    }
  }

  private static final class Inherits extends Outer {
    Inherits(Object inner) {
      super(inner);
    }
  }

  @Test
  void fieldsAreFoundOneInTheOther() {
    assertEquals("x", Inside.of(new Inherits(new Outer("x")), "inner", "inner"));
  }

  @Test
  void whatIsNotThereIsNothing() {
    assertNull(Inside.of(new Outer(null), "inner", "inner"));
    assertNull(Inside.of(new Outer("x"), "other"));
    assertNull(Inside.of(null, "inner"));
    assertNull(Inside.of("a text", "value"), "Java's own are not opened");
  }
}
