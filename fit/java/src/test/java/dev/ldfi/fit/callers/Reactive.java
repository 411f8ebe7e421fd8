package dev.ldfi.fit.callers;

import io.netty.buffer.Unpooled;
import io.netty.handler.timeout.ReadTimeoutHandler;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.springframework.http.client.reactive.ReactorClientHttpConnector;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.netty.http.client.HttpClient;
import reactor.netty.resources.LoopResources;

/** Programs that call over HTTP by Reactor Netty, alone and beneath WebClient. */
final class Reactive {
  private Reactive() {}

  static Map<String, Http.Caller> callers() {
    HttpClient client = HttpClient.create();
    HttpClient inJava = client.runOn(LoopResources.create("in-java"), false);
    Map<String, Http.Caller> all = new LinkedHashMap<>();
    all.put("Reactor Netty", (url, patience) -> said(client.responseTimeout(patience), url));
    all.put("Reactor Netty, over Java's sockets", (url, patience) -> said(inJava.responseTimeout(patience), url));
    all.put(
        "Reactor Netty, in parts",
        (url, patience) -> said(client.responseTimeout(patience).get().uri(url).responseContent().asByteArray().map(Arrays::toString).collectList().map(parts -> String.join(" and ", parts))));
    all.put(
        "Reactor Netty, with a body",
        (url, patience) -> said(answered(client.responseTimeout(patience).post().uri(url).send(Mono.fromSupplier(() -> Unpooled.wrappedBuffer(new byte[100]))))));
    all.put(
        "Reactor Netty, with a handler that waits",
        (url, patience) ->
            said(client.doOnConnected(made -> made.addHandlerLast(new ReadTimeoutHandler(patience.toMillis(), TimeUnit.MILLISECONDS))), url));
    all.put("WebClient", (url, patience) -> said(web(client, patience).get().uri(url).retrieve().toEntity(byte[].class).map(of -> of.getStatusCode() + " " + of.getHeaders() + Arrays.toString(of.getBody()))));
    all.put("WebClient, whatever the answer", (url, patience) -> said(web(client, patience).get().uri(url).exchangeToMono(of -> of.bodyToMono(byte[].class).map(Arrays::toString).defaultIfEmpty("nothing").map(body -> of.statusCode() + " " + body))));
    all.put(
        "WebClient, with a body",
        (url, patience) -> said(web(client, patience).post().uri(url).bodyValue("x".repeat(100)).retrieve().bodyToMono(byte[].class).map(Arrays::toString)));
    return all;
  }

  private static WebClient web(HttpClient client, Duration patience) {
    return WebClient.builder().clientConnector(new ReactorClientHttpConnector(client.responseTimeout(patience))).build();
  }

  private static String said(HttpClient client, String url) {
    return said(answered(client.get().uri(url)));
  }

  private static Mono<String> answered(HttpClient.ResponseReceiver<?> receiver) {
    return receiver.responseSingle(
        (response, body) ->
            body.asByteArray()
                .map(Arrays::toString)
                .defaultIfEmpty("nothing")
                .map(read -> response.status().code() + " " + response.responseHeaders().entries() + " " + read));
  }

  /** What there is to say, or what it fails with, in the pipeline itself. */
  private static String said(Mono<String> call) {
    return Flux.from(call).onErrorResume(failed -> Mono.just(Seen.failed(failed))).defaultIfEmpty("nothing").blockLast();
  }
}
