package io.opentelemetry.javaagent.ldfi;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** Statements that have PostgreSQL itself raise an error, or end the session. */
public final class Raising {
  /** What a server that only reads refuses, by the words with which it says so. */
  private static final Set<String> WRITING = new HashSet<>(Arrays.asList("INSERT", "UPDATE", "DELETE", "MERGE"));

  private Raising() {}

  /** Whether a statement of this verb can fail in this way. */
  public static boolean can(String kind, String verb) {
    switch (kind) {
      case "sql:lost":
      case "sql:deadlock":
      case "sql:serialization":
        return true;
      case "sql:readonly":
        return WRITING.contains(verb);
      default:
        return false;
    }
  }

  /** What is executed in place of a statement of this verb. */
  public static String text(String kind, String verb) {
    switch (kind) {
      case "sql:deadlock":
        return raising("40P01", "deadlock detected");
      case "sql:serialization":
        return raising("40001", "could not serialize access due to concurrent update");
      case "sql:readonly":
        return raising("25006", "cannot execute " + verb + " in a read-only transaction");
      default: // "sql:lost"
        return block("PERFORM pg_terminate_backend(pg_backend_pid())");
    }
  }

  private static String raising(String state, String message) {
    return block(
        "RAISE EXCEPTION USING ERRCODE = '" + state + "', MESSAGE = '" + message + "', HINT = 'fault injected'");
  }

  /** A statement that does this, and no more. */
  public static String block(String statement) {
    return "DO $fit$ BEGIN " + statement + "; END $fit$";
  }
}
