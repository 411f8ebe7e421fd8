import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/**
 * A page that needs one call, under OpenTelemetry's Java agent: WAY says how it is lost to sight, or
 * that it is not.
 */
public final class Page {
  private static final String STORE = System.getenv("STORE");
  private static final URI NEEDED = URI.create(STORE + "/price/17");
  private static final Duration PATIENCE = Duration.ofSeconds(3);
  private static final HttpClient CLIENT = HttpClient.newHttpClient();
  private static final ExecutorService POOL = Executors.newFixedThreadPool(2);
  private static final BlockingQueue<CompletableFuture<Boolean>> QUEUE = new LinkedBlockingQueue<>();

  private interface Way {
    boolean goes() throws Exception;
  }

  private static final Map<String, Way> WAYS =
      Map.ofEntries(
          Map.entry("seen", Page::needed),
          Map.entry("pool", () -> POOL.submit(Page::needed).get()),
          Map.entry("future", () -> CompletableFuture.supplyAsync(Page::needed, POOL).get()),
          Map.entry("parallel", () -> IntStream.range(0, 2).parallel().allMatch(ignored -> needed())),
          Map.entry("root", () -> Context.root().wrapSupplier(Page::needed).get()),
          Map.entry("nameless", () -> under(Span.wrap(SpanContext.getInvalid()))),
          Map.entry("new trace", Page::inNewTrace),
          Map.entry("queue", Page::queued),
          Map.entry("timer", Page::timed),
          Map.entry("thread", Page::inThread),
          Map.entry("callback", Page::calledBack),
          Map.entry("socket", Page::bySocket),
          Map.entry("child", Page::byChild),
          Map.entry("untold", Page::needed), // its instrumentation is off
          Map.entry("old client", Page::byOldClient)); // so is this one's

  private Page() {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length > 0) {
      System.exit(needed() ? 0 : 1);
    }
    daemon(Page::works);
    if (System.getenv("POLLS") != null) {
      daemon(Page::polls);
    }
    HttpServer server =
        HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.createContext("/health", exchange -> answer(exchange, 200));
    server.createContext("/page", Page::served);
    server.start();
  }

  private static void served(HttpExchange exchange) throws IOException {
    asked(URI.create(STORE + "/bestsellers")); // in sight, and not needed
    boolean fine = false;
    try {
      fine = WAYS.get(System.getenv("WAY")).goes();
    } catch (Exception failed) {
      System.err.println(failed);
    }
    answer(exchange, fine ? 200 : 500);
  }

  private static void answer(HttpExchange exchange, int status) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, 2);
    exchange.getResponseBody().write("{}".getBytes(StandardCharsets.US_ASCII));
    exchange.close();
  }

  private static boolean needed() {
    return asked(NEEDED);
  }

  private static boolean asked(URI uri) {
    try {
      HttpRequest request = HttpRequest.newBuilder(uri).timeout(PATIENCE).build();
      return CLIENT.send(request, BodyHandlers.discarding()).statusCode() == 200;
    } catch (IOException | InterruptedException failed) {
      return false;
    }
  }

  private static boolean under(Span span) {
    return Context.current().with(span).wrapSupplier(Page::needed).get();
  }

  private static boolean inNewTrace() {
    Span span = GlobalOpenTelemetry.getTracer("page").spanBuilder("work").setNoParent().startSpan();
    try {
      return under(span);
    } finally {
      span.end();
    }
  }

  private static void works() { // it began before any request
    try {
      while (true) {
        QUEUE.take().complete(needed());
      }
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
  }

  private static boolean queued() throws Exception {
    CompletableFuture<Boolean> found = new CompletableFuture<>();
    QUEUE.add(found);
    return found.get();
  }

  private static boolean inThread() throws Exception {
    CompletableFuture<Boolean> found = new CompletableFuture<>();
    daemon(() -> found.complete(needed()));
    return found.get();
  }

  /** What is to be done is done by whoever completes the future: a thread from before the request. */
  private static boolean calledBack() throws Exception {
    CompletableFuture<Boolean> other = new CompletableFuture<>();
    CompletableFuture<Boolean> found = other.thenApply(ignored -> needed());
    QUEUE.add(other);
    return found.get();
  }

  private static boolean timed() throws Exception {
    CompletableFuture<Boolean> found = new CompletableFuture<>();
    TimerTask task =
        new TimerTask() {
          @Override
          public void run() {
            found.complete(needed());
          }
        };
    new Timer(true).schedule(task, 1);
    return found.get();
  }

  private static boolean bySocket() throws IOException {
    try (Socket socket = new Socket(NEEDED.getHost(), NEEDED.getPort())) {
      String asks = "GET " + NEEDED.getPath() + " HTTP/1.0\r\n\r\n";
      socket.getOutputStream().write(asks.getBytes(StandardCharsets.US_ASCII));
      byte[] some = new byte[64];
      int many = socket.getInputStream().read(some);
      return many > 0 && new String(some, 0, many, StandardCharsets.US_ASCII).contains(" 200 ");
    }
  }

  private static boolean byChild() throws Exception {
    List<String> words = List.of("java", "-cp", System.getProperty("java.class.path"), "Page", "ask");
    return new ProcessBuilder(words).inheritIO().start().waitFor() == 0;
  }

  private static boolean byOldClient() throws IOException {
    HttpURLConnection connection = (HttpURLConnection) NEEDED.toURL().openConnection();
    connection.setReadTimeout((int) PATIENCE.toMillis());
    try (InputStream body = connection.getInputStream()) {
      body.readAllBytes();
    }
    return connection.getResponseCode() == 200;
  }

  private static void polls() {
    try {
      while (true) {
        TimeUnit.MILLISECONDS.sleep(130);
        asked(URI.create(STORE + "/news"));
      }
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
  }

  private static void daemon(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    thread.start();
  }
}
