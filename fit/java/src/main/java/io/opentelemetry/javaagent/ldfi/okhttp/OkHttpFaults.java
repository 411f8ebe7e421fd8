package io.opentelemetry.javaagent.ldfi.okhttp;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import okhttp3.Interceptor;
import okhttp3.Protocol;
import okhttp3.Response;

/** What an attempt of OkHttp's comes to when a fault hits it. It holds up its thread, as the attempt does. */
public final class OkHttpFaults {
  private OkHttpFaults() {}

  /** The answer or what the attempt fails with, one of them null; null makes it. */
  public static Object[] instead(Interceptor.Chain chain) {
    if (!Gate.isArmed()) {
      return null;
    }
    Attempt attempt = new Attempt(chain);
    Fault fault = Gate.pass(attempt::can);
    if (fault == null) {
      return null;
    }
    if (fault.isUnconnected()) {
      return new Object[] {null, unconnected(fault, chain)};
    }
    switch (fault.kind) {
      case "reset":
        return failed(attempt, new SocketException("Connection reset"));
      case "delay":
      case "timeout":
        return late(attempt, fault);
      default:
        attempt.end();
        return new Object[] {answer(chain, fault), null};
    }
  }

  /** What opening the connection would have failed with: nothing is tried again for it on the same way. */
  private static IOException unconnected(Fault fault, Interceptor.Chain chain) {
    IOException cause = fault.unconnected();
    if (!(cause instanceof ConnectException)) {
      return cause;
    }
    ConnectException failure = new ConnectException("Failed to connect to " + chain.connection().route().socketAddress());
    failure.initCause(cause);
    return failure;
  }

  private static Object[] failed(Attempt attempt, IOException failure) {
    attempt.fails(failure);
    return new Object[] {null, failure};
  }

  private static Object[] late(Attempt attempt, Fault fault) {
    int silence = attempt.silence();
    boolean tooLate = fault.outlasts(silence);
    if (!attempt.hangs(tooLate ? silence : fault.longest)) {
      return failed(attempt, new SocketException("Socket closed")); // by who has cancelled the call, or its own timer
    }
    if (!tooLate) {
      return null;
    }
    SocketTimeoutException timeout = new SocketTimeoutException("timeout");
    timeout.initCause(new SocketException("Socket closed"));
    return failed(attempt, timeout);
  }

  private static Response answer(Interceptor.Chain chain, Fault fault) {
    long now = System.currentTimeMillis();
    return new Response.Builder()
        .request(chain.request())
        .protocol(Protocol.HTTP_1_1)
        .code(fault.status())
        .message("Fault Injected")
        .header("Content-Type", fault.contentType())
        .header("Content-Length", String.valueOf(fault.announced()))
        .header("Connection", "close")
        .sentRequestAtMillis(now)
        .receivedResponseAtMillis(now)
        .body(Body.of(fault, chain.request().method().equals("HEAD")))
        .build();
  }
}
