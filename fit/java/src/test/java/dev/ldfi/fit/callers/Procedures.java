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

  private static final String ADDRESS = "127.0.0.1";
  private static final int PATIENCE = 500; // milliseconds
  private static final int LONG = 60_000;

  private final Keys keys;
  private final int well; // the port of the server that is

  private Procedures(Keys keys, int well) {
    this.keys = keys;
    this.well = well;
  }

  public static void main(String[] arguments) throws Exception {
    new Procedures(Keys.parse(arguments[0]), serving("ok").getPort()).tellOf(arguments[1].split(" "));
    System.exit(0);
  }

  private void tellOf(String... kinds) throws Exception {
    for (Map.Entry<String, Grpc.Program> each : Grpc.programs().entrySet()) {
      Grpc.Program program = each.getValue();
      program.said(well, LONG); // loads classes, for longer than it may be patient
      for (String kind : kinds) {
        boolean nobody = kind.equals("refused") || kind.equals("error");
        boolean unresolved = kind.equals(Dependency.UNRESOLVED);
        String there = unresolved ? Dependency.NOBODY : ADDRESS;
        String really = said(program, kind, there, nobody ? RedisServer.free() : serving(kind).getPort());
        tell(each.getKey(), program, kind, Dependency.named(ADDRESS, kind), really);
        if (unresolved) {
          tell(each.getKey() + Dependency.BY_ADDRESS, program, kind, ADDRESS, said(program, kind, ADDRESS, well));
        }
      }
    }
  }

  private void tell(String name, Grpc.Program program, String kind, String host, String really)
      throws InterruptedException {
    String point = "callers>rpc:" + program.method().getBareMethodName() + ":" + host + ":" + well + "/shop.Prices";
    Told told = Told.of(keys, name, kind, point, really, () -> said(program, kind, host, well));
    System.out.println(new Gson().toJson(told));
  }

  private static String said(Grpc.Program program, String kind, String host, int port) {
    long began = System.nanoTime();
    try {
      String said = program.said(host, port, Told.LASTING.contains(kind) ? PATIENCE : LONG);
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
