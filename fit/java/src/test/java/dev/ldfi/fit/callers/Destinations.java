package dev.ldfi.fit.callers;

import com.sun.net.httpserver.HttpServer;
import dev.ldfi.fit.Keys;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Scope;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;

/**
 * Runs under the agent: each program calls a host that may have a failure context, and one that may not. A line for each
 * says whether what came there had it, and the rest of the baggage.
 */
public final class Destinations {
  static final String STRANGER = "127.0.0.2";

  private static final Duration LONG = Duration.ofSeconds(60);
  private static final Metadata.Key<String> HEADER = Metadata.Key.of("baggage", Metadata.ASCII_STRING_MARSHALLER);

  private final Queue<String> came = new ConcurrentLinkedQueue<>();
  private final String context;

  /** What calls a host. */
  private interface Call {
    void to(String host) throws Exception;
  }

  private Destinations(String context) {
    this.context = context;
  }

  public static void main(String[] arguments) throws Exception {
    Destinations all = new Destinations(Told.context(Keys.parse(arguments[0]), "refused", "nobody>http:GET:nowhere/"));
    int http = all.http();
    for (Map.Entry<String, Http.Caller> each : Http.callers().entrySet()) {
      all.print(each.getKey(), host -> each.getValue().said("http://" + host + ":" + http + "/x", LONG));
    }
    List<String> sent = List.of("fit=" + all.context, "fit=" + all.context + ",user=u1"); // in two headers
    for (String each : new OnwardCalls(STRANGER).copying().keySet()) {
      all.print(each, host -> new OnwardCalls(host + ":" + http).copying().get(each).call(sent));
    }
    Server procedures = all.procedures();
    for (Map.Entry<String, Grpc.Program> each : Grpc.programs().entrySet()) {
      all.print(each.getKey(), host -> each.getValue().said(host, procedures.getPort(), (int) LONG.toMillis()));
    }
    System.exit(0);
  }

  private void print(String name, Call call) throws Exception {
    StringBuilder said = new StringBuilder(name).append(':');
    Baggage alone = Baggage.builder().put("fit", context).build();
    Baggage both = alone.toBuilder().put("user", "u1").build();
    said.append(seen("127.0.0.1", call, both)).append(seen(STRANGER, call, both)).append(seen(STRANGER, call, alone));
    System.out.println(said);
  }

  @SuppressWarnings("try") // a scope is held, and not asked
  private String seen(String host, Call call, Baggage baggage) throws Exception {
    came.clear();
    try (Scope carried = baggage.makeCurrent()) {
      call.to(host);
    }
    boolean hasIt = came.stream().anyMatch(each -> each.contains(context));
    String user = baggage.getEntryValue("user") == null ? "" : "user=u1";
    boolean hasRest = !came.isEmpty() && came.stream().allMatch(each -> each.contains(user));
    return (hasIt ? " has it" : " lacks it") + (hasRest ? "" : ", and the rest: " + came);
  }

  /** Starts a server, and returns its port. */
  private int http() throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress(0), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext(
        "/",
        exchange -> {
          came.add(String.join(",", exchange.getRequestHeaders().getOrDefault("baggage", List.of())));
          exchange.getRequestBody().readAllBytes();
          exchange.sendResponseHeaders(200, 2);
          exchange.getResponseBody().write("ok".getBytes());
          exchange.close();
        });
    server.start();
    return server.getAddress().getPort();
  }

  private Server procedures() throws Exception {
    ServerServiceDefinition.Builder service = ServerServiceDefinition.builder("shop.Prices");
    service.addMethod(Grpc.GET, ServerCalls.asyncUnaryCall((asked, answers) -> answer(answers)));
    service.addMethod(Grpc.ALL, ServerCalls.asyncBidiStreamingCall(Destinations::answered));
    ServerInterceptor keeps =
        new ServerInterceptor() {
          @Override
          public <A, B> ServerCall.Listener<A> interceptCall(
              ServerCall<A, B> call, Metadata headers, ServerCallHandler<A, B> next) {
            came.add(String.valueOf(headers.get(HEADER)));
            return next.startCall(call, headers);
          }
        };
    return NettyServerBuilder.forPort(0).addService(service.build()).intercept(keeps).build().start();
  }

  private static StreamObserver<byte[]> answered(StreamObserver<byte[]> answers) {
    return new StreamObserver<>() {
      @Override
      public void onNext(byte[] value) {}

      @Override
      public void onError(Throwable gone) {}

      @Override
      public void onCompleted() {
        answer(answers);
      }
    };
  }

  private static void answer(StreamObserver<byte[]> answers) {
    answers.onNext(new byte[0]);
    answers.onCompleted();
  }
}
