package dev.ldfi.fit.callers;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Programs that call a procedure by gRPC, each in its own way, and say all that they see. */
final class Grpc {
  static final MethodDescriptor<byte[], byte[]> GET = method(MethodDescriptor.MethodType.UNARY, "Get");
  static final MethodDescriptor<byte[], byte[]> ALL = method(MethodDescriptor.MethodType.BIDI_STREAMING, "All");

  private static final byte[] ASKED = new byte[100];

  /** What a program does with a channel, for the answer to which it waits as these options say. */
  interface Call {
    String said(Channel channel, CallOptions options) throws Exception;
  }

  /** A program: what it does, to which procedure, by what kind of channel. */
  record Program(Call call, MethodDescriptor<byte[], byte[]> method, boolean triesAgain) {
    String said(int port, int patience) throws InterruptedException {
      return said("127.0.0.1", port, patience);
    }

    String said(String host, int port, int patience) throws InterruptedException {
      ManagedChannel channel = open(host, port);
      try {
        return call.said(channel, CallOptions.DEFAULT.withDeadlineAfter(patience, TimeUnit.MILLISECONDS));
      } catch (Exception failed) {
        return seen(failed);
      } finally {
        channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
      }
    }

    private ManagedChannel open(String host, int port) {
      NettyChannelBuilder builder = NettyChannelBuilder.forAddress(host, port).usePlaintext();
      if (triesAgain) {
        builder.defaultServiceConfig(Map.of("methodConfig", List.of(RETRIED)));
      }
      return builder.build();
    }
  }

  private static final Map<String, ?> RETRIED =
      Map.of(
          "name", List.of(Map.of("service", "shop.Prices")),
          "retryPolicy",
              Map.of(
                  "maxAttempts", 3.0, "initialBackoff", "0.01s", "maxBackoff", "0.02s", "backoffMultiplier", 1.0,
                  "retryableStatusCodes", List.of("UNAVAILABLE")));

  private Grpc() {}

  static Map<String, Program> programs() {
    Map<String, Program> all = new LinkedHashMap<>();
    all.put("gRPC, blocking", new Program(Grpc::blocking, GET, false));
    all.put("gRPC, future", new Program(Grpc::future, GET, false));
    all.put("gRPC, stream", new Program(Grpc::streamed, ALL, false));
    all.put("gRPC, tries again", new Program(Grpc::blocking, GET, true));
    return all;
  }

  private static MethodDescriptor<byte[], byte[]> method(MethodDescriptor.MethodType type, String name) {
    String full = MethodDescriptor.generateFullMethodName("shop.Prices", name);
    return MethodDescriptor.<byte[], byte[]>newBuilder(new Bytes(), new Bytes()).setType(type).setFullMethodName(full).build();
  }

  private static String blocking(Channel channel, CallOptions options) {
    return new String(ClientCalls.blockingUnaryCall(channel, GET, options, ASKED));
  }

  private static String future(Channel channel, CallOptions options) throws Exception {
    try {
      return new String(ClientCalls.futureUnaryCall(channel.newCall(GET, options), ASKED).get());
    } catch (ExecutionException failed) {
      return "in its future " + seen(failed.getCause());
    }
  }

  private static String streamed(Channel channel, CallOptions options) throws Exception {
    StringBuilder said = new StringBuilder();
    CompletableFuture<String> told = new CompletableFuture<>();
    StreamObserver<byte[]> asks =
        ClientCalls.asyncBidiStreamingCall(
            channel.newCall(ALL, options),
            new StreamObserver<>() {
              @Override
              public void onNext(byte[] value) {
                said.append(new String(value)).append("; ");
              }

              @Override
              public void onError(Throwable failed) {
                told.complete(said + seen(failed));
              }

              @Override
              public void onCompleted() {
                told.complete(said + "over");
              }
            });
    for (int i = 0; i < 2; i++) {
      asks.onNext(ASKED);
    }
    asks.onCompleted();
    return told.get();
  }

  /**
   * What it sees of a failure, less what gRPC says of how far the call had come when its deadline passed, and what Netty
   * says around a connection that is refused.
   */
  private static String seen(Throwable failure) {
    Throwable caused = failure.getCause();
    String cause = "";
    if (caused != null) {
      boolean refused = caused instanceof ConnectException;
      String said = caused.getMessage().replaceFirst("^.*(Connection refused).*$", "$1");
      cause = " < " + (refused ? "a ConnectException: " + said : Seen.failed(caused));
    }
    Status status = Status.fromThrowable(failure);
    String late = String.valueOf(status.getDescription()).replaceFirst("(?<=deadline exceeded) .*", "");
    return failure.getClass().getName() + ": " + status.getCode() + ": " + late.replaceAll("localhost|" + Dependency.NOBODY, "HOST") + cause;
  }

  private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
    @Override
    public InputStream stream(byte[] value) {
      return new ByteArrayInputStream(value);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException unreadable) {
        throw new UncheckedIOException(unreadable);
      }
    }
  }
}
