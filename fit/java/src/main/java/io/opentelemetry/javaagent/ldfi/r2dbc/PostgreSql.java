package io.opentelemetry.javaagent.ldfi.r2dbc;

import io.netty.channel.Channel;
import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.Inside;
import io.opentelemetry.javaagent.ldfi.Raising;
import io.r2dbc.spi.Connection;
import org.reactivestreams.Publisher;

/**
 * A statement of r2dbc-postgresql, and what it comes to. As by JDBC the server executes one that raises the error in
 * its place, and a connection that is to fail is torn down, so exceptions are the driver's.
 */
final class PostgreSql {
  private final Connection connection;
  private final Channel channel;

  private PostgreSql(Connection connection, Channel channel) {
    this.connection = connection;
    this.channel = channel;
  }

  /** This statement, or batch; null where it is not of this driver, or its insides have changed. */
  static PostgreSql of(Object statement) {
    if (!statement.getClass().getName().startsWith("io.r2dbc.postgresql.")) {
      return null;
    }
    Object known = Inside.of(statement, "resources");
    Object resources = known == null ? Inside.of(statement, "context") : known;
    Object connection = Inside.of(resources, "connection");
    Object wire = Inside.of(resources, "client", "connection");
    return connection instanceof Connection && wire instanceof reactor.netty.Connection
        ? new PostgreSql((Connection) connection, ((reactor.netty.Connection) wire).channel())
        : null;
  }

  boolean can(Fault fault) {
    return fault.is("error") || fault.is("reset") || Raising.can(fault.kind, Gate.verb());
  }

  /** What fails in place of what executes the statement, or that, over a connection that fails. */
  Publisher<?> failing(Fault fault, Publisher<?> executes) {
    if (fault.is("error") || fault.is("reset")) {
      channel.pipeline().addFirst(new Cut(fault.is("reset")));
      return executes;
    }
    return connection.createStatement(Raising.text(fault.kind, Gate.verb())).execute();
  }
}
