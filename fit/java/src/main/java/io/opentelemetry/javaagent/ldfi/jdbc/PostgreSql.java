package io.opentelemetry.javaagent.ldfi.jdbc;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.Raising;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * A statement of PostgreSQL's driver, and what it comes to. In place of the caller's statement the server executes
 * one that raises the error, in a connection that is torn down the driver executes the caller's own: so exceptions
 * are the driver's with all that it knows, and transaction and connection are left as they are when it happens.
 */
final class PostgreSql {
  private final Statement statement;
  private final Connection connection;
  private final boolean batch;
  private final Wire wire;
  private final int socketPatience;
  private final long patience;

  private PostgreSql(Statement statement, boolean batch) throws SQLException {
    this.statement = statement;
    this.connection = statement.getConnection();
    this.batch = batch;
    this.wire = Wire.beneath(connection);
    this.socketPatience = connection.getNetworkTimeout();
    this.patience = shorter(1000L * statement.getQueryTimeout(), socketPatience);
  }

  /** This statement; null where it is not of this driver, or wrapped around one that is. */
  static PostgreSql of(Statement statement, String method) {
    try {
      PostgreSql found = new PostgreSql(statement, method.endsWith("Batch"));
      return found.wire == null ? null : found;
    } catch (SQLException | RuntimeException closed) {
      return null;
    }
  }

  private static long shorter(long one, long other) {
    return one == 0 || other == 0 ? one + other : Math.min(one, other);
  }

  /** How many milliseconds its caller waits for it; 0: for ever. */
  long patience() {
    return patience;
  }

  boolean can(Fault fault) {
    switch (fault.kind) {
      case "timeout":
        return fault.outlasts(patience);
      case "delay":
      case "error":
      case "reset":
        return true;
      default:
        return Raising.can(fault.kind, Gate.verb());
    }
  }

  /** Has it fail: what it fails with, or null where the driver finds out by itself. */
  Throwable fails(Fault fault) {
    switch (fault.kind) {
      case "error":
        wire.cut(0, null); // as the system closes the connections of a server that is gone
        return null;
      case "reset":
        wire.cut(0, new SocketException("Connection reset"));
        return null;
      case "delay":
      case "timeout":
        return patience == socketPatience ? silent() : executed(sleeping(fault.longest));
      default:
        return executed(Raising.text(fault.kind, Gate.verb()));
    }
  }

  private Throwable silent() {
    wire.cut(patience, new SocketTimeoutException("Read timed out"));
    try {
      connection.setNetworkTimeout(Runnable::run, socketPatience); // else the driver reads on
      return null;
    } catch (SQLException failed) {
      return failed;
    }
  }

  /** A statement that its query timeout ends. */
  private static String sleeping(long milliseconds) {
    return Raising.block("PERFORM pg_sleep(" + (milliseconds / 1000 + 1) + ")");
  }

  /** What executing this fails with, in the way and with the patience in which the caller's would be. */
  private Throwable executed(String text) {
    try (Statement ours = connection.createStatement()) {
      ours.setQueryTimeout(statement.getQueryTimeout());
      if (batch) {
        statement.clearBatch(); // as a batch is gone that has failed
        ours.addBatch(text);
        ours.executeBatch();
      } else {
        ours.execute(text);
      }
    } catch (SQLException failed) {
      return failed;
    }
    return new SQLException("fault injected, and the server did not say so");
  }
}
