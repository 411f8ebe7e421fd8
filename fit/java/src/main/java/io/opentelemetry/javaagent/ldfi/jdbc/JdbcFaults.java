package io.opentelemetry.javaagent.ldfi.jdbc;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * What a statement comes to when a fault hits it. What says something of the database is said by PostgreSQL and its
 * driver themselves, or not at all; any other database can be slow.
 */
public final class JdbcFaults {
  /** Whether this thread executes a statement of ours. */
  private static final ThreadLocal<Boolean> OURS = new ThreadLocal<>();

  private JdbcFaults() {}

  /** What executing the statement fails with; null executes it. */
  public static Throwable instead(Statement statement, String method) {
    if (!Gate.isArmed() || OURS.get() != null) {
      return null;
    }
    PostgreSql[] database = new PostgreSql[1];
    Fault fault =
        Gate.passStatement(
            possible -> {
              database[0] = PostgreSql.of(statement, method);
              return database[0] == null ? canBeSlow(statement, possible) : database[0].can(possible);
            });
    if (fault == null) {
      return null;
    }
    OURS.set(true);
    try {
      if (fault.is("delay") && (database[0] == null || !fault.outlasts(database[0].patience()))) {
        hang(fault.longest);
        return null;
      }
      return database[0].fails(fault);
    } finally {
      OURS.remove();
    }
  }

  private static boolean canBeSlow(Statement statement, Fault fault) {
    try {
      return fault.is("delay") && !fault.outlasts(1000L * statement.getQueryTimeout());
    } catch (SQLException closed) {
      return false;
    }
  }

  static void hang(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt(); // a driver that reads its socket is not interrupted: whoever asks is told
    }
  }
}
