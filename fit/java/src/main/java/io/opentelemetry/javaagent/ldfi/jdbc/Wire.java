package io.opentelemetry.javaagent.ldfi.jdbc;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.Socket;
import java.sql.Connection;

/** What a connection of PostgreSQL's driver goes over, which can be torn down beneath it. */
final class Wire {
  private final Object stream;
  private final Method change;
  private final Socket socket;

  private Wire(Object stream) throws ReflectiveOperationException {
    this.stream = stream;
    this.change = stream.getClass().getMethod("changeSocket", Socket.class);
    this.socket = (Socket) stream.getClass().getMethod("getSocket").invoke(stream);
  }

  /** That of this connection; null where it is not the driver's own, or its insides have changed. */
  static Wire beneath(Connection connection) {
    if (!connection.getClass().getName().startsWith("org.postgresql.")) {
      return null;
    }
    try {
      Object executor = connection.getClass().getMethod("getQueryExecutor").invoke(connection);
      Class<?> declaring = executor.getClass();
      while (!declaring.getSimpleName().equals("QueryExecutorBase")) {
        declaring = declaring.getSuperclass();
      }
      Field stream = declaring.getDeclaredField("pgStream");
      stream.setAccessible(true);
      return new Wire(stream.get(executor));
    } catch (ReflectiveOperationException | RuntimeException changed) {
      return null;
    }
  }

  /** Tears it down: who reads then waits so many milliseconds, and comes to the end or, if there is one, to a failure. */
  void cut(long milliseconds, IOException failure) {
    try {
      change.invoke(stream, new Dead(milliseconds, failure));
      socket.close();
    } catch (ReflectiveOperationException | IOException changed) {
      throw new IllegalStateException(changed);
    }
  }

  /** A socket whose other side is gone. */
  static final class Dead extends Socket {
    private final long milliseconds;
    private final IOException failure;

    Dead(long milliseconds, IOException failure) {
      this.milliseconds = milliseconds;
      this.failure = failure;
    }

    @Override
    public InputStream getInputStream() {
      return new Silence(milliseconds, failure);
    }

    @Override
    public OutputStream getOutputStream() {
      return new ByteArrayOutputStream();
    }
  }

  /** What is read of it. */
  static final class Silence extends InputStream {
    private final long milliseconds;
    private final IOException failure;

    Silence(long milliseconds, IOException failure) {
      this.milliseconds = milliseconds;
      this.failure = failure;
    }

    @Override
    public int read() throws IOException {
      JdbcFaults.hang(milliseconds);
      if (failure != null) {
        throw failure;
      }
      return -1;
    }
  }
}
