package io.opentelemetry.javaagent.ldfi.jdkhttp;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.Timer;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;

/** What a call by java.net.http comes to when a fault hits it. No thread is held up. */
public final class JdkHttpFaults {
  private JdkHttpFaults() {}

  /** The future to be returned in place of the call's; null makes the call. */
  public static CompletableFuture<?> instead(
      HttpClient client,
      HttpRequest request,
      HttpResponse.BodyHandler<?> handler,
      HttpResponse.PushPromiseHandler<?> pushes) {
    if (!Gate.isArmed()) {
      return null;
    }
    long patience = request.timeout().map(Duration::toMillis).orElse(0L);
    Fault fault = Gate.pass(possible -> can(possible, request.method(), patience));
    return fault == null ? null : struck(fault, client, request, handler, pushes, patience);
  }

  private static boolean can(Fault fault, String method, long patience) {
    if (fault.is("timeout")) {
      return fault.outlasts(patience);
    }
    return fault.isUnconnected()
        || fault.is("reset")
        || fault.is("delay")
        || fault.isAnswer() && !(fault.needsBody() && method.equals("HEAD"));
  }

  private static <T> CompletableFuture<HttpResponse<T>> struck(
      Fault fault,
      HttpClient client,
      HttpRequest request,
      HttpResponse.BodyHandler<T> handler,
      HttpResponse.PushPromiseHandler<?> pushes,
      long patience) {
    CompletableFuture<HttpResponse<T>> told = new CompletableFuture<>();
    Executor executor = client.executor().orElse(ForkJoinPool.commonPool());
    if (fault.isUnconnected()) {
      told.completeExceptionally(failure(unconnected(fault)));
      return told;
    }
    switch (fault.kind) {
      case "reset":
        told.completeExceptionally(failure(reset()));
        return told;
      case "delay":
      case "timeout":
        if (fault.outlasts(patience)) {
          Runnable late =
              () -> told.completeExceptionally(failure(new HttpTimeoutException("request timed out")));
          Timer.after(patience, executor, late);
        } else {
          Timer.after(fault.longest, executor, () -> goOn(client, request, handler, pushes, told));
        }
        return told;
      default:
        return Answer.of(fault, request, handler);
    }
  }

  /** Makes the call after all. Its span knows that it was decided on. */
  @SuppressWarnings("unchecked") // the call's own, of which the advice does not know the type
  private static <T> void goOn(
      HttpClient client,
      HttpRequest request,
      HttpResponse.BodyHandler<T> handler,
      HttpResponse.PushPromiseHandler<?> pushes,
      CompletableFuture<HttpResponse<T>> told) {
    client
        .sendAsync(request, handler, (HttpResponse.PushPromiseHandler<T>) pushes)
        .whenComplete(
            (response, failed) -> {
              if (failed == null) {
                told.complete(response);
              } else {
                told.completeExceptionally(failed);
              }
            });
  }

  private static IOException unconnected(Fault fault) {
    ConnectException failure = new ConnectException();
    failure.initCause(fault.thrown("http"));
    return failure;
  }

  private static IOException reset() {
    return new IOException(
        "HTTP/1.1 header parser received no bytes", new SocketException("Connection reset"));
  }

  private static CompletionException failure(IOException of) {
    return new CompletionException(of);
  }
}
