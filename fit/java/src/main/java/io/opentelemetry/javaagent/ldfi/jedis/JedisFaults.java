package io.opentelemetry.javaagent.ldfi.jedis;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import java.io.ByteArrayInputStream;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
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
  private static final String LOADING = "-LOADING Redis is loading the dataset in memory\r\n";
  private static final String READ_ONLY = "-READONLY You can't write against a read only replica.\r\n";

  /** How a connection says where it leads: "Connection{DefaultJedisSocketFactory{HOST:PORT}}". */
  private static final Pattern AT = Pattern.compile("\\{([^{}]+)\\}");

  /** What a replica refuses, of the commands that are used most: others are let through. */
  private static final Set<String> WRITING =
      new HashSet<>(
          Arrays.asList(
              ("APPEND COPY DECR DECRBY DEL EXPIRE EXPIREAT FLUSHALL FLUSHDB GEOADD GETDEL GETEX GETSET HDEL HINCRBY"
                      + " HINCRBYFLOAT HMSET HSET HSETNX INCR INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX"
                      + " LREM LSET LTRIM MSET MSETNX PERSIST PEXPIRE PEXPIREAT PFADD PFMERGE PSETEX RENAME RENAMENX"
                      + " RPOP RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTERSTORE SMOVE"
                      + " SPOP SREM SUNIONSTORE UNLINK XACK XADD XDEL XTRIM ZADD ZINCRBY ZPOPMAX ZPOPMIN ZREM"
                      + " ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE")
                  .split(" ")));

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
      case "refused":
      case "reset":
      case "redis:lost":
      case "redis:loading":
        return true;
      case "redis:readonly":
        return WRITING.contains(Gate.verb());
      default:
        return false;
    }
  }

  private static Throwable failure(Fault fault, Connection connection, int patience) {
    switch (fault.kind) {
      case "redis:loading":
        return said(LOADING);
      case "redis:readonly":
        return said(READ_ONLY);
      case "refused":
        return broken(connection, refused(connection));
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

  private static RuntimeException refused(Connection connection) {
    Matcher at = AT.matcher(connection.toString());
    JedisConnectionException refused =
        new JedisConnectionException("Failed to connect to " + (at.find() ? at.group(1) : "any host") + ".");
    refused.addSuppressed(new ConnectException("Connection refused"));
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
