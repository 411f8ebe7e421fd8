package dev.ldfi.fit.callers;

import java.sql.SQLException;

/** What a program can see of a failure: each exception by type and words, with what caused it. */
final class Seen {
  /** The text of the statement, and what stands at the end, which is another line where there is a hint. */
  private static final String OF_BATCHES =
      "(?<=^Batch entry 0 ).*(?= was aborted)|  Call getNextException to see other errors in the batch.$";

  private Seen() {}

  /** Whether it is a class of Java's own that no program can name: with which of them a timer ends is chance. */
  private static boolean isInside(Throwable failure) {
    return failure.getClass().getName().startsWith("jdk.internal.");
  }

  /** Its message; of one from a database the state, and the first line: what follows are numbers of processes. */
  private static String words(Throwable failure) {
    if (!(failure instanceof SQLException)) {
      return failure.getMessage();
    }
    SQLException said = (SQLException) failure;
    String next = said.getNextException() == null ? "" : ", next " + failed(said.getNextException());
    String line = String.valueOf(said.getMessage()).lines().findFirst().orElse("");
    return said.getSQLState() + " " + line.replaceAll(OF_BATCHES, "") + next;
  }

  static String failed(Throwable failure) {
    StringBuilder said = new StringBuilder();
    for (Throwable each = failure; each != null && !isInside(each); each = each.getCause()) {
      said.append(each.getClass().getName()).append(": ").append(words(each)).append(" < ");
    }
    return said.toString().replaceAll("127\\.0\\.0\\.1:\\d+|localhost|" + Dependency.NOBODY, "HOST");
  }
}
