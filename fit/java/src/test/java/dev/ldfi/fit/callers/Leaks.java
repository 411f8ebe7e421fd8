package dev.ldfi.fit.callers;

import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Scope;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Runs under the agent: fifty requests at once, every other one under an experiment of its own. Each calls what its own
 * context aims at and what the next one's does. A line for each way of going from thread to thread says which did not
 * see what they should.
 */
public final class Leaks {
  private static final int REQUESTS = 50;
  private static final int THREADS = 4; // so that they are handed from request to request

  private final String server;
  private final HttpClient client = HttpClient.newHttpClient();
  private final WebClient web = WebClient.create();
  private final ExecutorService few = Executors.newFixedThreadPool(THREADS);
  private final ExecutorService fewer = Executors.newFixedThreadPool(2);

  /** A way of making the calls of a request to these paths, whose statuses are its answer. */
  private interface Way {
    List<Integer> statuses(List<String> paths) throws Exception;
  }

  private Leaks(String server) {
    this.server = server;
  }

  public static void main(String[] arguments) throws Exception {
    Leaks leaks = new Leaks(Dependency.at("ok"));
    Keys keys = Keys.parse(arguments[0]);
    Map<String, Way> ways = new LinkedHashMap<>();
    ways.put("thread pools", leaks::pooled);
    ways.put("futures", leaks::composed);
    ways.put("reactive pipelines", leaks::reactive);
    ExecutorService virtual = virtual();
    if (virtual != null) {
      ways.put("virtual threads", paths -> leaks.handed(virtual, paths));
    }
    for (Map.Entry<String, Way> each : ways.entrySet()) {
      System.out.println(each.getKey() + ": " + leaks.all(keys, each.getValue()));
    }
    System.exit(0);
  }

  /** From Java 21 on. */
  private static ExecutorService virtual() throws Exception {
    try {
      return (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    } catch (NoSuchMethodException older) {
      return null;
    }
  }

  /** What went wrong, of all requests at once. */
  private List<String> all(Keys keys, Way way) throws Exception {
    ExecutorService requests = Executors.newFixedThreadPool(REQUESTS);
    CountDownLatch together = new CountDownLatch(REQUESTS);
    List<Future<String>> running = new ArrayList<>();
    for (int i = 0; i < REQUESTS; i++) {
      int number = i;
      Callable<String> request =
          () -> {
            together.countDown();
            together.await();
            return request(keys, way, number);
          };
      running.add(requests.submit(request));
    }
    List<String> wrong = new ArrayList<>();
    for (Future<String> each : running) {
      String said = each.get();
      if (!said.isEmpty()) {
        wrong.add(said);
      }
    }
    requests.shutdown();
    return wrong;
  }

  @SuppressWarnings("try") // a scope is held, and not asked
  private String request(Keys keys, Way way, int number) throws Exception {
    boolean under = number % 2 == 0;
    String carried = Told.context(keys, "status:503", point(number));
    Baggage baggage = under ? Baggage.builder().put("fit", carried).build() : Baggage.empty();
    Span root = GlobalOpenTelemetry.getTracer("callers").spanBuilder("request").setNoParent().startSpan();
    List<Integer> seen;
    try (Scope context = baggage.makeCurrent();
        Scope within = root.makeCurrent()) {
      seen = way.statuses(List.of(path(number), path((number + 1) % REQUESTS), path((number + 2) % REQUESTS)));
    } finally {
      root.end();
    }
    List<Integer> expected = List.of(under ? 503 : 200, 200, 200);
    return seen.equals(expected) ? "" : number + " saw " + seen;
  }

  /** Letters alone: what looks like a number is no part of a name. */
  private static String path(int number) {
    return "/" + (char) ('a' + number / 10) + (char) ('a' + number % 10);
  }

  private String point(int number) {
    return Points.http("callers", "GET", "127.0.0.1", Integer.parseInt(server.split(":")[1]), path(number), "");
  }

  private HttpRequest request(String path) {
    return HttpRequest.newBuilder(URI.create("http://" + server + path)).timeout(Duration.ofMinutes(2)).build();
  }

  private int status(String path) throws Exception {
    return client.send(request(path), HttpResponse.BodyHandlers.discarding()).statusCode();
  }

  /** From one pool to another. */
  private List<Integer> pooled(List<String> paths) throws Exception {
    return few.submit(() -> handed(fewer, paths)).get();
  }

  private List<Integer> handed(ExecutorService to, List<String> paths) throws Exception {
    List<Integer> statuses = new ArrayList<>();
    for (String path : paths) {
      statuses.add(to.submit(() -> status(path)).get());
    }
    return statuses;
  }

  private List<Integer> composed(List<String> paths) throws Exception {
    CompletableFuture<List<Integer>> statuses = CompletableFuture.completedFuture(new ArrayList<>());
    for (String path : paths) {
      statuses =
          statuses.thenComposeAsync(
              before ->
                  client
                      .sendAsync(request(path), HttpResponse.BodyHandlers.discarding())
                      .thenApplyAsync(
                          answer -> {
                            before.add(answer.statusCode());
                            return before;
                          },
                          fewer),
              few);
    }
    return statuses.get();
  }

  private List<Integer> reactive(List<String> paths) {
    return Flux.fromIterable(paths)
        .publishOn(Schedulers.parallel())
        .concatMap(path -> Mono.delay(Duration.ofMillis(5)).then(answered(path)))
        .subscribeOn(Schedulers.boundedElastic())
        .collectList()
        .block();
  }

  private Mono<Integer> answered(String path) {
    return web.get().uri("http://" + server + path).exchangeToMono(answer -> answer.releaseBody().thenReturn(answer.statusCode().value()));
  }
}
