package dev.ldfi.fit.callers;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Runs under the agent: a request under experiment makes a call, and leaves another to be made when it is over. A line
 * for each way of leaving it says what both came to, and what is written of the second.
 */
public final class Leftovers {
  /** Requests that wait for a call of another one. */
  private static final int JOINING = 4;

  private final String server = Dependency.at("ok");
  private final HttpClient client = HttpClient.newHttpClient();
  private final ExecutorService pool = Executors.newFixedThreadPool(2);
  private final ScheduledExecutorService timer = Executors.newScheduledThreadPool(1);
  private final String context;

  /** A way of leaving something to be done, which waits by itself until the request is over. */
  private interface Way {
    CompletableFuture<Integer> leave(Supplier<Integer> work);
  }

  /** A request: its trace, what it saw, and what came of what it left. */
  private record Served(String trace, int within, CompletableFuture<Integer> left) {}

  private Leftovers(Keys keys) throws IOException {
    int port = Integer.parseInt(server.split(":")[1]);
    this.context = Told.context(keys, "status:404", Points.http("callers", "GET", "127.0.0.1", port, "/x", ""));
  }

  public static void main(String[] arguments) throws Exception {
    Leftovers leftovers = new Leftovers(Keys.parse(arguments[0]));
    for (Map.Entry<String, Way> each : leftovers.ways().entrySet()) {
      System.out.println("a server's, " + each.getKey() + ": " + leftovers.byServer(each.getValue()));
      System.out.println("its own, " + each.getKey() + ": " + leftovers.byHand(each.getValue()));
    }
    System.out.println("a single flight: " + leftovers.flight());
    System.exit(0);
  }

  private Map<String, Way> ways() {
    Map<String, Way> ways = new LinkedHashMap<>();
    ways.put("executor", work -> CompletableFuture.supplyAsync(work, pool));
    ways.put(
        "timer",
        work -> {
          CompletableFuture<Integer> done = new CompletableFuture<>();
          timer.schedule(() -> done.complete(work.get()), 1, TimeUnit.MILLISECONDS);
          return done;
        });
    ways.put(
        "thread",
        work -> {
          CompletableFuture<Integer> done = new CompletableFuture<>();
          Runnable works = () -> done.complete(work.get());
          new Thread(Context.current().wrap(works)).start();
          return done;
        });
    ways.put("future", work -> CompletableFuture.runAsync(() -> {}, pool).thenApplyAsync(nothing -> work.get(), pool));
    ways.put(
        "worker",
        work -> {
          CompletableFuture<Integer> done = new CompletableFuture<>();
          BlockingQueue<Runnable> queue = new LinkedBlockingQueue<>();
          new Thread(Context.current().wrap(() -> taken(queue).run())).start();
          queue.add(() -> done.complete(work.get()));
          return done;
        });
    ways.put(
        "ticker",
        work -> {
          CompletableFuture<Integer> done = new CompletableFuture<>();
          Runnable ticks =
              () -> {
                done.complete(work.get());
                throw new CancellationException("once is enough");
              };
          timer.scheduleAtFixedRate(Context.current().wrap(ticks), 1, 1, TimeUnit.MILLISECONDS);
          return done;
        });
    ways.put(
        "mail",
        work -> {
          CompletableFuture<Integer> done = new CompletableFuture<>();
          Queue<Supplier<Integer>> outbox = new ConcurrentLinkedQueue<>(List.of(work));
          timer.schedule(() -> done.complete(outbox.remove().get()), 1, TimeUnit.MILLISECONDS);
          return done;
        });
    ways.put(
        "cache",
        work -> {
          Map<String, CompletableFuture<Integer>> cache = new ConcurrentHashMap<>();
          return cache.computeIfAbsent("rating", name -> CompletableFuture.supplyAsync(work, pool));
        });
    ways.put(
        "batch",
        work -> {
          List<Supplier<Integer>> gathered = List.of(work, work);
          return CompletableFuture.supplyAsync(
              () -> gathered.stream().mapToInt(Supplier::get).max().getAsInt(), pool);
        });
    ways.put("pipeline", work -> Mono.fromSupplier(work).subscribeOn(Schedulers.boundedElastic()).toFuture());
    return ways;
  }

  /** In a request to a server that the agent knows. */
  private String byServer(Way way) throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    CompletableFuture<Served> served = new CompletableFuture<>();
    HttpServer listening = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    listening.createContext(
        "/",
        exchange -> {
          served.complete(served(way, over));
          answer(exchange);
        });
    listening.start();
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), listening.getAddress().getPort())) {
      OutputStream out = socket.getOutputStream();
      out.write(("GET / HTTP/1.0\r\nbaggage: fit=" + context + "\r\n\r\n").getBytes());
      out.flush();
      socket.getInputStream().readAllBytes();
    }
    String said = said(served.get(), over);
    listening.stop(0);
    return said;
  }

  private static void answer(HttpExchange exchange) throws IOException {
    exchange.sendResponseHeaders(204, -1);
    exchange.close();
  }

  /** In a request whose span the application begins and ends itself. */
  @SuppressWarnings("try") // a scope is held, and not asked
  private String byHand(Way way) throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    Served served;
    try (Scope carried = Baggage.builder().put("fit", context).build().makeCurrent()) {
      Span span = request();
      try (Scope request = span.makeCurrent()) {
        served = served(way, over);
      } finally {
        span.end();
      }
    }
    return said(served, over);
  }

  private Served served(Way way, CountDownLatch over) {
    int within = status();
    CompletableFuture<Integer> left =
        way.leave(
            () -> {
              await(over);
              return status();
            });
    return new Served(Span.current().getSpanContext().getTraceId(), within, left);
  }

  private static Runnable taken(BlockingQueue<Runnable> queue) {
    try {
      return queue.take();
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  /** What requests see that wait for a call of one under experiment, itself last, and how many calls were hit. */
  @SuppressWarnings("try") // a scope is held, and not asked
  private String flight() throws Exception {
    CountDownLatch joined = new CountDownLatch(JOINING);
    List<CompletableFuture<Integer>> seen = new ArrayList<>();
    Span span = request();
    try (Scope carried = Baggage.builder().put("fit", context).build().makeCurrent();
        Scope request = span.makeCurrent()) {
      Supplier<Integer> asks =
          () -> {
            await(joined);
            return status();
          };
      CompletableFuture<Integer> shared = CompletableFuture.supplyAsync(asks, pool);
      for (int other = 0; other < JOINING; other++) {
        CompletableFuture<Integer> answered = new CompletableFuture<>();
        seen.add(answered);
        new Thread(() -> answered.complete(joining(shared, joined))).start();
      }
      seen.add(shared);
      CompletableFuture.allOf(seen.toArray(new CompletableFuture<?>[0])).get();
    } finally {
      span.end();
    }
    waitFor(span.getSpanContext().getTraceId(), ".kind", "SERVER");
    long hit = Told.spans().stream().filter(each -> each.containsKey("fit.fired")).filter(each -> isOf(span, each)).count();
    return seen.stream().map(CompletableFuture::join).toList() + " " + hit;
  }

  private static boolean isOf(Span request, Map<String, String> span) {
    return request.getSpanContext().getTraceId().equals(span.get(".trace"));
  }

  /** In a request of its own, without a context. */
  @SuppressWarnings("try") // a scope is held, and not asked
  private static int joining(CompletableFuture<Integer> shared, CountDownLatch joined) {
    Span span = request();
    try (Scope request = span.makeCurrent()) {
      joined.countDown();
      return shared.join();
    } finally {
      span.end();
    }
  }

  private static Span request() {
    return GlobalOpenTelemetry.getTracer("callers").spanBuilder("by hand").setSpanKind(SpanKind.SERVER).startSpan();
  }

  private static void await(CountDownLatch over) {
    try {
      over.await();
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  private int status() {
    try {
      HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + server + "/x")).build();
      return client.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
    } catch (IOException | InterruptedException failed) {
      throw new IllegalStateException(failed);
    }
  }

  /** Has the rest be done when the span of the request has ended, and says what came of it. */
  private static String said(Served served, CountDownLatch over) throws Exception {
    waitFor(served.trace(), ".kind", "SERVER");
    over.countDown();
    int left = served.left().get();
    String marked = waitFor(served.trace(), "fit.outlived", "true") ? "outlived" : "not marked";
    return served.within() + " " + left + " " + marked;
  }

  /** Waits for a span of a trace that says this. */
  private static boolean waitFor(String trace, String name, String value) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (System.nanoTime() < end) {
      if (Told.spans().stream().anyMatch(each -> trace.equals(each.get(".trace")) && value.equals(each.get(name)))) {
        return true;
      }
      Thread.sleep(5);
    }
    return false;
  }
}
