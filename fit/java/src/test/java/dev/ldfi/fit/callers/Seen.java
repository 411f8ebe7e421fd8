package dev.ldfi.fit.callers;

/** What a program can see of a failure: each exception by type and words, with what caused it. */
final class Seen {
  private Seen() {}

  /** Whether it is a class of Java's own that no program can name: with which of them a timer ends is chance. */
  private static boolean isInside(Throwable failure) {
    return failure.getClass().getName().startsWith("jdk.internal.");
  }

  static String failed(Throwable failure) {
    StringBuilder said = new StringBuilder();
    for (Throwable each = failure; each != null && !isInside(each); each = each.getCause()) {
      said.append(each.getClass().getName()).append(": ").append(each.getMessage()).append(" < ");
    }
    return said.toString().replaceAll("127\\.0\\.0\\.1:\\d+", "HOST");
  }
}
