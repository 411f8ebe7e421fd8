package io.opentelemetry.javaagent.ldfi.urlconnection;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import java.io.ByteArrayInputStream;
import java.io.FileNotFoundException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.net.HttpURLConnection;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.URLConnection;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;

/** What a call by HttpURLConnection comes to when a fault hits it. It holds up its thread, as the call does. */
public final class UrlConnectionFaults {
  private UrlConnectionFaults() {}

  /**
   * Joins baggage that is added to that which is there; returns whether it did. The agent replaces one header of a
   * name, and a second would be sent beside it.
   */
  public static boolean joins(HttpURLConnection connection, String name, String value) {
    String there = "baggage".equalsIgnoreCase(name) ? connection.getRequestProperty(name) : null;
    if (there == null || value == null) {
      return false;
    }
    connection.setRequestProperty(name, there + "," + value);
    return true;
  }

  /** What opening the connection fails with; null opens it. */
  public static Throwable connecting(HttpURLConnection connection) {
    if (!Gate.isArmed()) {
      return null;
    }
    Fault fault = Gate.pass(connection::getRequestMethod, Fault::isUnconnected);
    return fault == null ? null : unconnected(fault);
  }

  /** What its socket says; of a name that it was given looked up, it does not know what was wrong. */
  private static IOException unconnected(Fault fault) {
    IOException failure = fault.unconnected();
    return failure instanceof UnknownHostException ? new UnknownHostException(fault.host) : failure;
  }

  /** The answer's body or what reading it fails with, one of them null; null makes the call. */
  public static Object[] answering(HttpURLConnection connection) {
    if (!Gate.isArmed()) {
      return null;
    }
    long patience = connection.getReadTimeout();
    Fault fault =
        Gate.pass(
            connection::getRequestMethod,
            possible -> can(possible, connection.getRequestMethod(), patience) && !isAnswered(connection));
    if (fault == null) {
      return null;
    }
    switch (fault.kind) {
      case "reset":
        return failed(connection, new SocketException("Connection reset"));
      case "delay":
      case "timeout":
        boolean late = fault.outlasts(patience);
        hang(late ? patience : fault.longest);
        return late ? failed(connection, new SocketTimeoutException("Read timed out")) : null;
      default:
        return answered(connection, fault);
    }
  }

  private static boolean can(Fault fault, String method, long patience) {
    if (fault.is("timeout")) {
      return fault.outlasts(patience);
    }
    return fault.is("reset")
        || fault.is("delay")
        || fault.isAnswer() && !(fault.needsBody() && method.equals("HEAD"));
  }

  private static void hang(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt(); // reading from a socket cannot be interrupted either: whoever asks is told
    }
  }

  private static Object[] failed(HttpURLConnection connection, IOException failure) {
    put(connection, "rememberedException", failure);
    return new Object[] {null, failure};
  }

  /** Puts the answer where the connection keeps one that it has read. */
  private static Object[] answered(HttpURLConnection connection, Fault fault) {
    InputStream body = new Body(metered(fault));
    put(connection, "responses", headers(fault));
    put(connection, "inputStream", body);
    set(URLConnection.class, connection, "connected", true);
    set(HttpURLConnection.class, connection, "responseCode", fault.status());
    if (fault.status() < HttpURLConnection.HTTP_BAD_REQUEST) {
      return new Object[] {body, null};
    }
    return failed(connection, refusal(fault.status(), connection));
  }

  /** What the connection says of an answer that says no. */
  private static IOException refusal(int status, HttpURLConnection connection) {
    String url = connection.getURL().toString();
    if (status == HttpURLConnection.HTTP_NOT_FOUND || status == HttpURLConnection.HTTP_GONE) {
      return new FileNotFoundException(url);
    }
    return new IOException("Server returned HTTP response code: " + status + " for URL: " + url);
  }

  private static Object headers(Fault fault) {
    String head =
        "HTTP/1.1 " + fault.status() + " Fault Injected\r\nContent-Type: " + fault.contentType()
            + "\r\nContent-Length: " + fault.announced() + "\r\nConnection: close\r\n\r\n";
    try {
      return Class.forName("sun.net.www.MessageHeader")
          .getConstructor(InputStream.class)
          .newInstance(new ByteArrayInputStream(head.getBytes(StandardCharsets.US_ASCII)));
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException(changed);
    }
  }

  /** Java's own stream, which knows the announced length: newer ones tell of a body that ends before it. */
  private static InputStream metered(Fault fault) {
    InputStream body = new ByteArrayInputStream(fault.body());
    try {
      Constructor<?> made = Class.forName("sun.net.www.MeteredStream").getConstructors()[0];
      boolean older = made.getParameterCount() == 3; // it can show its progress
      Object[] arguments =
          older ? new Object[] {body, null, (long) fault.announced()} : new Object[] {body, (long) fault.announced()};
      return (InputStream) made.newInstance(arguments);
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException(changed);
    }
  }

  private static boolean isAnswered(HttpURLConnection connection) {
    return remembered(connection, "rememberedException") != null || remembered(connection, "inputStream") != null;
  }

  private static Object remembered(HttpURLConnection connection, String name) {
    try {
      return field(implementation(connection), name).get(connection);
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException(changed);
    }
  }

  private static void put(HttpURLConnection connection, String name, Object value) {
    set(implementation(connection), connection, name, value);
  }

  private static void set(Class<?> declaring, Object of, String name, Object value) {
    try {
      field(declaring, name).set(of, value);
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException(changed);
    }
  }

  private static Field field(Class<?> declaring, String name) throws NoSuchFieldException {
    Field field = declaring.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  private static Class<?> implementation(HttpURLConnection connection) {
    Class<?> found = connection.getClass();
    while (!found.getName().equals("sun.net.www.protocol.http.HttpURLConnection")) {
      found = found.getSuperclass();
    }
    return found;
  }

  /** The body of an answer, until it is closed. */
  static final class Body extends FilterInputStream {
    private boolean closed;

    Body(InputStream body) {
      super(body);
    }

    @Override
    public int read() throws IOException {
      requireOpen();
      return super.read();
    }

    @Override
    public int read(byte[] into, int from, int length) throws IOException {
      requireOpen();
      return super.read(into, from, length);
    }

    @Override
    public void close() {
      closed = true;
    }

    private void requireOpen() throws IOException {
      if (closed) {
        throw new IOException("stream is closed");
      }
    }
  }
}
