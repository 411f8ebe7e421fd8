package io.opentelemetry.javaagent.ldfi.grpc;

import io.grpc.CallOptions;
import io.grpc.ClientStreamTracer;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Status;
import io.grpc.internal.ClientStream;
import io.grpc.internal.FailingClientStream;
import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.Timer;
import java.io.IOException;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** What an attempt of gRPC comes to when a fault hits it. No thread is held up. */
public final class GrpcFaults {
  private static final String ANSWERS = "grpc:";

  private GrpcFaults() {}

  /** The stream to be used in place of the attempt's; null opens that. */
  public static ClientStream instead(CallOptions options, ClientStreamTracer[] tracers, Supplier<ClientStream> opens) {
    if (!Gate.isArmed()) {
      return null;
    }
    long patience = patience(options);
    Fault fault = Gate.passRpc(possible -> can(possible, options, patience));
    if (fault == null) {
      return null;
    }
    if (fault.isUnconnected()) {
      return new FailingClientStream(unconnected(fault), tracers);
    }
    switch (fault.kind) {
      case "error":
        return new FailingClientStream(unconnected(fault.as("refused")), tracers);
      case "delay":
      case "timeout":
        return fault.outlasts(patience) ? new Silence() : late(fault.longest, opens);
      default:
        return new FailingClientStream(answer(fault), tracers);
    }
  }

  private static boolean can(Fault fault, CallOptions options, long patience) {
    switch (fault.kind) {
      case "timeout":
        return fault.outlasts(patience);
      case "delay":
        return true;
      default:
        if (fault.kind.startsWith(ANSWERS)) {
          return true;
        }
        boolean connects = fault.is("error") || fault.isUnconnected();
        return connects && !options.isWaitForReady(); // for such a call there is no failing to connect
    }
  }

  /** Milliseconds until the call's deadline, or that of what it is part of; 0: it has none. */
  private static long patience(CallOptions options) {
    Deadline of = options.getDeadline();
    Deadline around = Context.current().getDeadline();
    Deadline first = of == null ? around : around == null ? of : of.minimum(around);
    return first == null ? 0 : Math.max(first.timeRemaining(TimeUnit.MILLISECONDS), 1);
  }

  /** Of a name that it looks up it tells what went wrong as that of its own. */
  private static Status unconnected(Fault fault) {
    IOException cause = fault.unconnected();
    Throwable told = cause instanceof UnknownHostException ? new RuntimeException(cause) : cause;
    return Status.UNAVAILABLE.withDescription(fault.said("grpc")).withCause(told);
  }

  private static Status answer(Fault fault) {
    Status.Code code = Status.Code.valueOf(fault.kind.substring(ANSWERS.length()));
    return code.toStatus().withDescription(new String(fault.body(), StandardCharsets.UTF_8));
  }

  private static ClientStream late(long milliseconds, Supplier<ClientStream> opens) {
    Later later = new Later();
    Runnable goesOn = Context.current().wrap(() -> later.goOn(opens));
    Timer.after(milliseconds, ForkJoinPool.commonPool(), goesOn);
    return later.stream();
  }
}
