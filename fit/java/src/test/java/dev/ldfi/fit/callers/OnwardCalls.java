package dev.ldfi.fit.callers;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import org.springframework.web.reactive.function.client.WebClient;

/** How a request calls the next service, by name; those that copy send on the baggage that the request had. */
final class OnwardCalls {
  private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final WebClient web = WebClient.create();
  private final org.apache.http.impl.client.CloseableHttpClient apache4 =
      org.apache.http.impl.client.HttpClients.createDefault();
  private final org.apache.hc.client5.http.impl.classic.CloseableHttpClient apache5 =
      org.apache.hc.client5.http.impl.classic.HttpClients.createDefault();
  private final OkHttpClient okHttp = new OkHttpClient();
  private final ExecutorService pool = Executors.newFixedThreadPool(2);
  private final URI next;

  /** Calls of the service at this host and port. */
  OnwardCalls(String next) {
    this.next = URI.create("http://" + next + "/");
  }

  /** Calls the next service, given the values of {@code baggage} that the request had in its header and its trailer. */
  interface Way {
    void call(List<String> baggage) throws IOException, InterruptedException, ExecutionException;
  }

  /** Those that copy. */
  Map<String, Way> copying() {
    Map<String, Way> ways = ways();
    ways.keySet().removeIf(name -> !name.endsWith("-copies"));
    return ways;
  }

  Map<String, Way> ways() {
    List<String> nothing = List.of();
    Map<String, Way> ways = new LinkedHashMap<>();
    ways.put("client", baggage -> client.send(request(nothing), HttpResponse.BodyHandlers.discarding()));
    ways.put("client-copies", baggage -> client.send(request(baggage), HttpResponse.BodyHandlers.discarding()));
    ways.put("async", baggage -> client.sendAsync(request(nothing), HttpResponse.BodyHandlers.discarding()).get());
    ways.put("executor", baggage -> pool.submit(() -> byConnection(nothing)).get());
    ways.put("future", baggage -> CompletableFuture.supplyAsync(() -> byConnection(nothing), pool).get());
    ways.put("connection-copies", this::byConnection);
    ways.put("apache4-copies", this::byApache4);
    ways.put("apache5-copies", this::byApache5);
    ways.put("okhttp-copies", this::byOkHttp);
    ways.put("webclient", baggage -> byWebClient(nothing));
    ways.put("webclient-copies", this::byWebClient);
    return ways;
  }

  private HttpRequest request(List<String> baggage) {
    HttpRequest.Builder request = HttpRequest.newBuilder(next);
    baggage.forEach(each -> request.header("baggage", each));
    return request.build();
  }

  private int byConnection(List<String> baggage) {
    try {
      HttpURLConnection connection = (HttpURLConnection) next.toURL().openConnection();
      baggage.forEach(each -> connection.addRequestProperty("baggage", each));
      return connection.getResponseCode();
    } catch (IOException failed) {
      return 0; // the next service has heard nothing, which is what is looked at
    }
  }

  private void byApache4(List<String> baggage) throws IOException {
    var request = new org.apache.http.client.methods.HttpGet(next);
    baggage.forEach(each -> request.addHeader("baggage", each));
    apache4.execute(request).close();
  }

  private void byApache5(List<String> baggage) throws IOException {
    var request = new org.apache.hc.client5.http.classic.methods.HttpGet(next);
    baggage.forEach(each -> request.addHeader("baggage", each));
    apache5.execute(request, answer -> answer.getCode());
  }

  private void byOkHttp(List<String> baggage) throws IOException {
    Request.Builder request = new Request.Builder().url(next.toString());
    baggage.forEach(each -> request.addHeader("baggage", each));
    okHttp.newCall(request.build()).execute().close();
  }

  private void byWebClient(List<String> baggage) throws InterruptedException, ExecutionException {
    web.get()
        .uri(next)
        .headers(headers -> headers.addAll("baggage", baggage))
        .retrieve()
        .toBodilessEntity()
        .toFuture()
        .get();
  }
}
