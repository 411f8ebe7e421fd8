package dev.ldfi.fit.callers;

import dev.ldfi.fit.FaultPoint;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;

/** What an application has that is no library's: its own methods, some of which somebody has named. */
final class Prices {
  /** An exception of the application's own, which needs no words. */
  static final class Gone extends Exception {
    private static final long serialVersionUID = 1;
  }

  private boolean gone;

  /** In the property, and says what it throws. */
  String read(String product) throws IOException {
    if (product.isEmpty()) {
      throw new IOException("fault injected");
    }
    return "price of " + product;
  }

  /** Of the same name, and throws nothing. */
  String read(int product) {
    return "price of " + product;
  }

  void leave() {
    gone = true;
  }

  @FaultPoint(raises = {Gone.class, IllegalStateException.class})
  int total(int of) throws Gone {
    if (gone) {
      throw new Gone();
    }
    return 3 * of;
  }

  /** What fails later is let alone. */
  @FaultPoint
  CompletableFuture<String> later() {
    return CompletableFuture.completedFuture("later");
  }

  String unnamed() {
    return "unnamed";
  }
}
