package dev.ldfi.fit.callers;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.Points;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/**
 * Runs under the agent: a service whose process ends when a call of its own fails, is asked once in the control arm and
 * once in that of treatment.
 */
public final class Killed {
  /** The span of the call by which it is asked. */
  static final String CALLER = "b7ad6b7169203331";

  private final HttpClient client = HttpClient.newHttpClient();
  private final String dependency;

  private Killed(String dependency) {
    this.dependency = dependency;
  }

  public static void main(String[] arguments) throws Exception {
    Keys keys = Keys.parse(arguments[0]);
    String dependency = Dependency.at("ok");
    String point = Points.http("callers", "GET", "127.0.0.1", Integer.parseInt(dependency.split(":")[1]), "/x", "");
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", new Killed(dependency)::serve);
    server.start();
    for (String arm : new String[] {"c", "t"}) {
      ask(server.getAddress().getPort(), Told.context(keys, "refused", point, arm));
    }
    System.exit(1); // it was to be dead
  }

  private static void ask(int port, String context) throws IOException {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      OutputStream out = socket.getOutputStream();
      String traced = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-" + CALLER + "-01\r\n";
      out.write(("GET / HTTP/1.0\r\n" + traced + "baggage: fit=" + context + "\r\n\r\n").getBytes());
      out.flush();
      socket.getInputStream().readAllBytes();
    }
  }

  private void serve(HttpExchange exchange) throws IOException {
    try {
      HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + dependency + "/x")).build();
      client.send(request, HttpResponse.BodyHandlers.discarding());
    } catch (IOException | InterruptedException failed) {
      Runtime.getRuntime().halt(0);
    }
    exchange.sendResponseHeaders(204, -1);
    exchange.close();
  }
}
