package io.opentelemetry.javaagent.ldfi.jdkhttp;

import io.opentelemetry.javaagent.ldfi.Fault;
import java.io.EOFException;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import javax.net.ssl.SSLSession;

/** An answer in the dependency's place, whose body goes through the caller's own handler. */
public final class Answer<T> implements HttpResponse<T>, HttpResponse.ResponseInfo {
  private final HttpRequest request;
  private final int status;
  private final HttpHeaders headers;
  private final T body;

  private Answer(HttpRequest request, int status, HttpHeaders headers, T body) {
    this.request = request;
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  static <T> CompletableFuture<HttpResponse<T>> of(
      Fault fault, HttpRequest request, HttpResponse.BodyHandler<T> handler) {
    HttpHeaders headers =
        HttpHeaders.of(
            Map.of(
                "content-type", List.of(fault.contentType()),
                "content-length", List.of(String.valueOf(fault.announced())),
                "connection", List.of("close")),
            (name, value) -> true);
    Answer<T> info = new Answer<>(request, fault.status(), headers, null);
    HttpResponse.BodySubscriber<T> subscriber = handler.apply(info);
    subscriber.onSubscribe(new Cut(fault, subscriber));
    return subscriber
        .getBody()
        .<HttpResponse<T>>thenApply(body -> new Answer<>(request, fault.status(), headers, body))
        .toCompletableFuture();
  }

  /** Sends the body when it is asked for, and ends as it really would. */
  static final class Cut implements Flow.Subscription {
    private final Fault fault;
    private final HttpResponse.BodySubscriber<?> subscriber;
    private boolean over;

    Cut(Fault fault, HttpResponse.BodySubscriber<?> subscriber) {
      this.fault = fault;
      this.subscriber = subscriber;
    }

    @Override
    public void request(long wanted) {
      synchronized (this) {
        if (over) {
          return;
        }
        over = true;
      }
      byte[] body = fault.body();
      if (body.length > 0) {
        subscriber.onNext(List.of(ByteBuffer.wrap(body).asReadOnlyBuffer()));
      }
      if (fault.announced() > body.length) {
        EOFException ended = new EOFException("EOF reached while reading");
        String said =
            "fixed content-length: " + fault.announced() + ", bytes received: " + body.length;
        subscriber.onError(new IOException(said, ended));
      } else {
        subscriber.onComplete();
      }
    }

    @Override
    public synchronized void cancel() {
      over = true;
    }
  }

  @Override
  public int statusCode() {
    return status;
  }

  @Override
  public HttpRequest request() {
    return request;
  }

  @Override
  public Optional<HttpResponse<T>> previousResponse() {
    return Optional.empty();
  }

  @Override
  public HttpHeaders headers() {
    return headers;
  }

  @Override
  public T body() {
    return body;
  }

  @Override
  public Optional<SSLSession> sslSession() {
    return Optional.empty();
  }

  @Override
  public URI uri() {
    return request.uri();
  }

  @Override
  public HttpClient.Version version() {
    return HttpClient.Version.HTTP_1_1;
  }
}
