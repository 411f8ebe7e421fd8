package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.Map;

/**
 * Runs under the agent: each program calls a procedure of a server to which something really happens, and then of one
 * that is well while the same is injected. A line of JSON for each says what was seen and what was recorded.
 */
public final class Procedures {
  /** A delay for which every program is patient enough. */
  static final String SHORT = "delay-300";

  private static final int PATIENCE = 500; // milliseconds
  private static final int LONG = 60_000;

  private Procedures() {}

  public static void main(String[] arguments) throws Exception {
    Keys keys = Keys.parse(arguments[0]);
    Server well = serving("ok");
    for (Map.Entry<String, Grpc.Program> each : Grpc.programs().entrySet()) {
      Grpc.Program program = each.getValue();
      program.said(well.getPort(), LONG); // loads classes, for longer than it may be patient
      String procedure = program.method().getBareMethodName();
      String point = "callers>rpc:" + procedure + ":127.0.0.1:" + well.getPort() + "/shop.Prices";
      for (String kind : arguments[1].split(" ")) {
        boolean nobody = kind.equals("refused") || kind.equals("error");
        String really = said(program, kind, nobody ? RedisServer.free() : serving(kind).getPort());
        Told told = Told.of(keys, each.getKey(), kind, point, really, () -> said(program, kind, well.getPort()));
        System.out.println(new Gson().toJson(told));
      }
    }
    System.exit(0);
  }

  private static String said(Grpc.Program program, String kind, int port) {
    long began = System.nanoTime();
    try {
      String said = program.said(port, Told.LASTING.contains(kind) ? PATIENCE : LONG);
      boolean late = kind.equals(SHORT) && System.nanoTime() - began > 300_000_000L;
      return said.replaceAll("127\\.0\\.0\\.1:\\d+", "HOST") + (late ? "; late" : "");
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  /** A server that does to each call what this kind of fault is. */
  private static Server serving(String kind) throws IOException {
    ServerServiceDefinition.Builder service = ServerServiceDefinition.builder("shop.Prices");
    service.addMethod(Grpc.GET, ServerCalls.asyncUnaryCall((asked, answers) -> answer(kind, answers)));
    service.addMethod(Grpc.ALL, ServerCalls.asyncBidiStreamingCall(answers -> asked(kind, answers)));
    return NettyServerBuilder.forPort(0).addService(service.build()).build().start();
  }

  private static void answer(String kind, StreamObserver<byte[]> answers) {
    if (kind.startsWith("grpc:")) {
      Status status = Status.Code.valueOf(kind.substring(5)).toStatus();
      answers.onError(status.withDescription("fault injected").asRuntimeException());
    } else if (!Told.LASTING.contains(kind)) {
      pause(kind);
      answers.onNext("fine".getBytes());
      answers.onCompleted();
    }
  }

  private static StreamObserver<byte[]> asked(String kind, StreamObserver<byte[]> answers) {
    return new StreamObserver<>() {
      private int count;

      @Override
      public void onNext(byte[] value) {
        count += value.length;
      }

      @Override
      public void onError(Throwable gone) {}

      @Override
      public void onCompleted() {
        if (kind.startsWith("grpc:") || Told.LASTING.contains(kind)) {
          answer(kind, answers);
          return;
        }
        pause(kind);
        answers.onNext(String.valueOf(count).getBytes());
        answers.onCompleted();
      }
    };
  }

  private static void pause(String kind) {
    if (kind.equals(SHORT)) {
      try {
        Thread.sleep(301);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
