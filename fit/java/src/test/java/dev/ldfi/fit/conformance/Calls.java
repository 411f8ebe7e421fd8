package dev.ldfi.fit.conformance;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.protocol.ProtocolVersion;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Scope;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import org.apache.http.client.methods.HttpGet;
import org.apache.http.impl.client.HttpClients;
import reactor.core.publisher.Flux;
import redis.clients.jedis.ClientSetInfoConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;

/** Runs under the agent: makes calls that it is told, a line of JSON for each, and says what was recorded of the last. */
public final class Calls {
  private Calls() {}

  /** A call to a port. */
  private interface Call {
    void made(int port) throws Exception;
  }

  private static final Map<String, Call> CALLS =
      Map.of(
          "apache4", port -> HttpClients.createDefault().execute(new HttpGet("http://127.0.0.1:" + port + "/titles/17")).close(),
          "grpc", Calls::procedure,
          "jedis", Calls::redis,
          "lettuce", Calls::lettuce,
          "r2dbc", Calls::database);

  @SuppressWarnings("try") // a scope is held, and not asked
  public static void main(String[] arguments) throws Exception {
    BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = asked.readLine(); line != null; line = asked.readLine()) {
      JsonObject of = JsonParser.parseString(line).getAsJsonObject();
      Baggage baggage = Baggage.builder().put("fit", of.get("context").getAsString()).build();
      spans().clear();
      try (Scope carried = baggage.makeCurrent()) {
        CALLS.get(of.get("by").getAsString()).made(of.get("port").getAsInt());
      } catch (Exception nobody) {
        // there need not be somebody who answers
      }
      System.out.println(new Gson().toJson(last()));
    }
  }

  /** The span of the last call. */
  private static Map<String, String> last() throws InterruptedException {
    Map<String, String> last = Map.of();
    for (int i = 0; last.isEmpty() && i < 500; i++) {
      for (Map<String, String> each : spans()) {
        last = each.get(".kind").equals("CLIENT") ? each : last;
      }
      Thread.sleep(10); // the span of an answer ends after who waits for it goes on
    }
    return last;
  }

  private static void redis(int port) {
    JedisClientConfig alone = DefaultJedisClientConfig.builder().clientSetInfoConfig(ClientSetInfoConfig.DISABLED).build();
    try (Jedis jedis = new Jedis(new HostAndPort("127.0.0.1", port), alone)) {
      jedis.get("a");
    }
  }

  private static void lettuce(int port) {
    RedisURI at = RedisURI.create("127.0.0.1", port);
    at.setLibraryName(null);
    at.setLibraryVersion(null);
    RedisClient client = RedisClient.create();
    client.setOptions(
        ClientOptions.builder().protocolVersion(ProtocolVersion.RESP2).pingBeforeActivateConnection(false).build());
    try (StatefulRedisConnection<String, String> connection = client.connect(at)) {
      connection.sync().get("a");
    } finally {
      client.shutdown(0, 1, TimeUnit.SECONDS);
    }
  }

  /** Another database than PostgreSQL, which there is without a server. */
  private static void database(int port) {
    ConnectionFactory factory = ConnectionFactories.get("r2dbc:h2:mem:///other");
    Flux.usingWhen(
            factory.create(),
            connection ->
                Flux.from(connection.createStatement("select 17 from dual").execute())
                    .flatMap(result -> result.map((row, of) -> row.get(0))),
            Connection::close)
        .blockLast();
  }

  private static void procedure(int port) {
    MethodDescriptor.Marshaller<byte[]> bytes = new Nothing();
    MethodDescriptor<byte[], byte[]> get =
        MethodDescriptor.<byte[], byte[]>newBuilder(bytes, bytes)
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName("shop.Prices/Get")
            .build();
    ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", port).usePlaintext().build();
    try {
      ClientCalls.blockingUnaryCall(channel, get, CallOptions.DEFAULT, new byte[0]);
    } finally {
      channel.shutdownNow();
    }
  }

  private static final class Nothing implements MethodDescriptor.Marshaller<byte[]> {
    @Override
    public InputStream stream(byte[] value) {
      return new ByteArrayInputStream(value);
    }

    @Override
    public byte[] parse(InputStream stream) {
      return new byte[0];
    }
  }

  @SuppressWarnings("unchecked") // put there by the tests' own extension
  private static Queue<Map<String, String>> spans() {
    return (Queue<Map<String, String>>) System.getProperties().get("ldfi.test.spans");
  }
}
