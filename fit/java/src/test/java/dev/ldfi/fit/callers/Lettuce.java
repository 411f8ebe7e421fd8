package dev.ldfi.fit.callers;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import io.lettuce.core.resource.SocketAddressResolver;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import reactor.core.publisher.Mono;

/** Programs that have a Redis set a key by Lettuce, each in its own way, and say all that they see. */
final class Lettuce {
  /** How programs are called that do not connect again. */
  static final String ONCE = ", once";

  private static final int LATE = 1_400; // milliseconds
  private static final Set<Integer> FORGOTTEN = ConcurrentHashMap.newKeySet();
  private static final ClientResources SHARED = // its threads take their time to end
      DefaultClientResources.builder().socketAddressResolver(new Lookup()).build();
  private static final TimeoutOptions ENDS = TimeoutOptions.enabled();
  private static final TimeoutOptions DOES_NOT = TimeoutOptions.create();

  /** What happens between a program's connecting and its command; it is told how it knows that it has no connection. */
  interface Meanwhile {
    void connected(CountDownLatch lost);
  }

  /** A program: what it says of a command to the server at this port, waiting for so many milliseconds. */
  interface Program {
    String said(String host, int port, int patience, Meanwhile meanwhile);

    default String said(int port, int patience, Meanwhile meanwhile) {
      return said("127.0.0.1", port, patience, meanwhile);
    }
  }

  /** What a program does with its connection. */
  private interface Use {
    String said(StatefulRedisConnection<String, String> connection) throws InterruptedException;
  }

  /** Looks names up; that of a server which was forgotten is not found any more. */
  private static final class Lookup extends SocketAddressResolver {
    @Override
    public SocketAddress resolve(RedisURI uri) {
      boolean isGone = FORGOTTEN.contains(uri.getPort());
      return isGone ? InetSocketAddress.createUnresolved(Dependency.NOBODY, uri.getPort()) : super.resolve(uri);
    }
  }

  private Lettuce() {}

  /** Has the name of the server at this port not resolve any more. */
  static void forget(int port) {
    FORGOTTEN.add(port);
  }

  static Map<String, Program> programs() {
    Map<String, Program> all = new LinkedHashMap<>();
    all.put("waiting", program(true, DOES_NOT, connection -> connection.sync().set("a", "b")));
    all.put("waiting" + ONCE, program(false, DOES_NOT, connection -> connection.sync().set("a", "b")));
    all.put("by a future", program(true, ENDS, connection -> got(connection.async().set("a", "b"))));
    all.put("by a future" + ONCE, program(false, ENDS, connection -> got(connection.async().set("a", "b"))));
    all.put("reactive", program(true, ENDS, Lettuce::reactive));
    return all;
  }

  /** Programs that ask for more than one thing, of which the first is late. */
  static Map<String, Program> several() {
    Map<String, Program> all = new LinkedHashMap<>();
    all.put("one after the other", program(true, DOES_NOT, Lettuce::ordered));
    return all;
  }

  /** Programs of which none sees anything of a fault: they are let through. */
  static Map<String, Program> letThrough() {
    Map<String, Program> all = new LinkedHashMap<>();
    all.put("error", program(true, DOES_NOT, connection -> got(connection.async().set("a", "b"))));
    all.put(Lettuces.LATER, program(true, DOES_NOT, Lettuce::transaction));
    return all;
  }

  /** Another request's command on the connection on which one is late. */
  static final Program BESIDE = program(true, DOES_NOT, Lettuce::beside);

  private static Program program(boolean again, TimeoutOptions timeouts, Use use) {
    ClientOptions options = ClientOptions.builder().autoReconnect(again).timeoutOptions(timeouts).build();
    return (host, port, patience, meanwhile) -> {
      RedisClient client = RedisClient.create(SHARED);
      client.setOptions(options);
      CountDownLatch lost = new CountDownLatch(1);
      RedisURI at = RedisURI.builder().withHost(host).withPort(port).build();
      try (StatefulRedisConnection<String, String> connection = client.connect(at)) {
        connection.setTimeout(Duration.ofMillis(patience));
        connection.addListener(
            new RedisConnectionStateListener() {
              @Override
              public void onRedisDisconnected(RedisChannelHandler<?, ?> of) {
                lost.countDown();
              }
            });
        meanwhile.connected(lost);
        long began = System.nanoTime();
        String said = said(use, connection);
        return late(began) + said;
      } finally {
        client.shutdown(0, 1, TimeUnit.SECONDS);
      }
    };
  }

  private static String said(Use use, StatefulRedisConnection<String, String> connection) {
    try {
      return use.said(connection);
    } catch (RuntimeException | InterruptedException failed) {
      return Seen.failed(failed);
    }
  }

  private static String late(long began) {
    return (System.nanoTime() - began) / 1_000_000 >= LATE ? "late, " : "";
  }

  private static String got(Future<?> future) throws InterruptedException {
    try {
      return String.valueOf(future.get());
    } catch (ExecutionException failed) {
      return Seen.failed(failed);
    }
  }

  /** What it is, or what it fails with, in the pipeline itself. */
  private static String reactive(StatefulRedisConnection<String, String> connection) {
    return connection.reactive().set("a", "b").onErrorResume(failed -> Mono.just(Seen.failed(failed))).block();
  }

  /** What is asked second sees what was asked first. */
  private static String ordered(StatefulRedisConnection<String, String> connection) throws InterruptedException {
    RedisAsyncCommands<String, String> asynchronous = connection.async();
    connection.sync().del("a");
    RedisFuture<String> first = asynchronous.set("a", "b");
    RedisFuture<String> second = asynchronous.get("a");
    return got(first) + ", " + got(second);
  }

  private static String transaction(StatefulRedisConnection<String, String> connection) throws InterruptedException {
    RedisAsyncCommands<String, String> asynchronous = connection.async();
    asynchronous.multi();
    asynchronous.set("a", "b");
    return got(asynchronous.exec().thenApply(all -> all.size() + " done").toCompletableFuture());
  }

  @SuppressWarnings("try") // a scope is held, and not asked
  private static String beside(StatefulRedisConnection<String, String> connection) throws InterruptedException {
    long began = System.nanoTime();
    RedisFuture<String> late = connection.async().set("a", "b");
    String other;
    try (Scope another = Context.root().makeCurrent()) {
      String answer = got(connection.async().echo("c"));
      other = late(began) + answer;
    }
    return "beside " + other + ", " + got(late);
  }
}
