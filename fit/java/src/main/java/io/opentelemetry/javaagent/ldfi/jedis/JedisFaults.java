package io.opentelemetry.javaagent.ldfi.jedis;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.Redis;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.util.RedisInputStream;

/**
 * What a command comes to when a fault hits it. What Redis says is read by Jedis, so its exceptions are its own. It holds
 * up its thread, as the command does.
 */
public final class JedisFaults {
  /** How a connection says where it leads: "Connection{DefaultJedisSocketFactory{HOST:PORT}}". */
  private static final Pattern AT = Pattern.compile("\\{([^{}]+)\\}");

  private JedisFaults() {}

  /** What the command fails with; null sends it. */
  public static Throwable instead(Connection connection, CommandArguments command) {
    if (!Gate.isArmed()) {
      return null;
    }
    int patience = command.isBlocking() ? 0 : connection.getSoTimeout(); // milliseconds; 0: for ever
    Fault fault = Gate.passStatement(possible -> can(possible, patience));
    return fault == null ? null : failure(fault, connection, patience);
  }

  private static boolean can(Fault fault, int patience) {
    switch (fault.kind) {
      case "timeout":
        return fault.outlasts(patience);
      case "delay":
      case "error":
      case "reset":
      case "redis:lost":
      case "redis:loading":
        return true;
      case "redis:readonly":
        return Redis.refuses(Gate.verb());
      default:
        return fault.isUnconnected();
    }
  }

  private static Throwable failure(Fault fault, Connection connection, int patience) {
    if (fault.isUnconnected()) {
      return broken(connection, unconnected(fault, connection));
    }
    switch (fault.kind) {
      case "redis:loading":
        return said("-" + Redis.LOADING + "\r\n");
      case "redis:readonly":
        return said("-" + Redis.READ_ONLY + "\r\n");
      case "reset":
        return broken(connection, new JedisConnectionException(new SocketException("Connection reset")));
      case "delay":
      case "timeout":
        boolean late = fault.outlasts(patience);
        hang(late ? patience : fault.longest);
        SocketTimeoutException passed = new SocketTimeoutException("Read timed out");
        return late ? broken(connection, new JedisConnectionException(passed)) : null;
      default: // a server that is gone has closed its connections
        return broken(connection, said(""));
    }
  }

  /** What Jedis makes of an answer. */
  private static RuntimeException said(String answer) {
    byte[] bytes = answer.getBytes(StandardCharsets.US_ASCII);
    try {
      Protocol.read(new RedisInputStream(new ByteArrayInputStream(bytes)));
      throw new IllegalStateException("no error: " + answer);
    } catch (RuntimeException failed) {
      return failed;
    }
  }

  private static RuntimeException unconnected(Fault fault, Connection connection) {
    IOException cause = fault.unconnected();
    if (!(cause instanceof ConnectException)) {
      return new JedisConnectionException("Failed to create socket.", cause);
    }
    Matcher at = AT.matcher(connection.toString());
    JedisConnectionException refused =
        new JedisConnectionException("Failed to connect to " + (at.find() ? at.group(1) : "any host") + ".");
    refused.addSuppressed(cause);
    return refused;
  }

  /** A pool throws such a connection away. */
  private static RuntimeException broken(Connection connection, RuntimeException failure) {
    connection.setBroken();
    return failure;
  }

  private static void hang(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt(); // who reads a socket is not interrupted: whoever asks is told
    }
  }
}
