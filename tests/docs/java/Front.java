import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.Executors;

/**
 * The page of a book, whose client is the JDK's. Nobody has thought of tracing it. Planted: without the stock it does
 * well; the price it asks twice of the same service, and then gives up.
 */
public final class Front {
  private static final HttpClient CLIENT = HttpClient.newHttpClient();
  private static final String STOCK = "http://127.0.0.1:8701/stock/";
  private static final String PRICE = "http://127.0.0.1:8702/prices/";

  private Front() {}

  public static void main(String[] arguments) throws IOException {
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/books/", exchange -> {
      String book = exchange.getRequestURI().getPath().substring("/books/".length());
      String stock = first(STOCK + book);
      String price = first(PRICE + book, PRICE + book);
      byte[] page = ("stock: " + stock + ", price: " + price).getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(price == null ? 500 : 200, page.length);
      exchange.getResponseBody().write(page);
      exchange.close();
    });
    server.start();
  }

  /** The first answer that is one; null where there is none. */
  private static String first(String... urls) {
    for (String url : urls) {
      HttpRequest asked = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(5)).build();
      try {
        HttpResponse<String> answer = CLIENT.send(asked, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() == 200) {
          return answer.body();
        }
      } catch (IOException | InterruptedException failed) {
        // the next is asked
      }
    }
    return null;
  }
}
