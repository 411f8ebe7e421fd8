package dev.ldfi.fit.callers;

import java.util.LinkedHashMap;
import java.util.Map;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;
import redis.clients.jedis.JedisPooled;

/** Programs that have a Redis set a key, each in its own way, and say all that they see. */
final class Redis {
  /** A program: what it says of a command to the server at this port of a host, for whose answer it waits so many milliseconds. */
  interface Program {
    String said(String host, int port, int patience);

    default String said(int port, int patience) {
      return said("127.0.0.1", port, patience);
    }
  }

  private Redis() {}

  static Map<String, Program> programs() {
    Map<String, Program> all = new LinkedHashMap<>();
    all.put("Jedis", Redis::alone);
    all.put("Jedis, from a pool", Redis::pooled);
    all.put("JedisPooled", Redis::unified);
    return all;
  }

  private static JedisClientConfig patient(int patience) {
    return DefaultJedisClientConfig.builder().socketTimeoutMillis(patience).build();
  }

  private static String alone(String host, int port, int patience) {
    try (Jedis jedis = new Jedis(new HostAndPort(host, port), patient(patience))) {
      return set(jedis) + (jedis.isBroken() ? "; broken" : "; whole");
    } catch (RuntimeException failed) {
      return "no connection: " + Seen.failed(failed);
    }
  }

  private static String pooled(String host, int port, int patience) {
    JedisPoolConfig one = new JedisPoolConfig();
    one.setMaxTotal(1);
    try (JedisPool pool = new JedisPool(one, new HostAndPort(host, port), patient(patience))) {
      String said;
      try (Jedis jedis = pool.getResource()) {
        said = set(jedis) + (jedis.isBroken() ? "; broken" : "; whole");
      } catch (RuntimeException failed) {
        said = "no connection: " + Seen.failed(failed);
      }
      return said + "; destroyed " + pool.getDestroyedCount();
    }
  }

  private static String set(Jedis jedis) {
    try {
      return jedis.set("a", "b");
    } catch (RuntimeException failed) {
      return Seen.failed(failed);
    }
  }

  private static String unified(String host, int port, int patience) {
    try (JedisPooled jedis = new JedisPooled(new HostAndPort(host, port), patient(patience))) {
      return jedis.set("a", "b");
    } catch (RuntimeException failed) {
      return Seen.failed(failed);
    }
  }
}
