package dev.ldfi.fit.conformance;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.context.Context;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;
import org.springframework.http.server.reactive.ReactorHttpHandlerAdapter;
import org.springframework.web.reactive.function.server.RequestPredicates;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;
import reactor.netty.http.server.HttpServer;

/**
 * An edge, in a process of its own under the agent: it answers each request with the {@code baggage} with which a call
 * that it made would go out, byte for byte, and says its port. As a servlet it also says which spans have ended.
 */
public final class Front {
  private static final List<String> INSTRUMENTED =
      List.of(
          "ldfi-fit", "opentelemetry-api", "executors", "servlet", "tomcat", "netty", "reactor-netty", "reactor");

  private static final String MAX_HEADERS = "16384"; // bytes: more than OpenTelemetry reads of baggage

  private Front() {}

  public static void main(String[] arguments) throws Exception {
    int port =
        switch (arguments[0]) {
          case "tomcat" -> tomcat();
          case "webflux" -> webflux();
          default -> throw new IllegalArgumentException(arguments[0]);
        };
    System.out.println(port);
    if (arguments.length > 1) {
      ProcessHandle.of(Long.parseLong(arguments[1])).ifPresent(host -> host.onExit().join());
      System.exit(0);
    }
    Thread.currentThread().join(); // for a server's own threads keep no process alive
  }

  /** Starts one as in a process with the variables that are asked for, and says where it listens; one at a time. */
  static synchronized JsonElement started(String server, JsonObject asked) {
    List<String> words = new ArrayList<>();
    words.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    words.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
    words.addAll(List.of("-Dldfi.edge=true", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"));
    words.add("-Dotel.instrumentation.common.default-enabled=false"); // or each takes seconds to start
    INSTRUMENTED.forEach(each -> words.add("-Dotel.instrumentation." + each + ".enabled=true"));
    words.addAll(List.of("-cp", System.getProperty("java.class.path"), Front.class.getName(), server));
    words.add(Long.toString(ProcessHandle.current().pid())); // it ends with this one
    ProcessBuilder starting = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.DISCARD);
    starting.environment().keySet().removeIf(name -> name.startsWith("LDFI_") || name.startsWith("FIT_HALT"));
    asked.getAsJsonObject("environment").entrySet().forEach(
        each -> starting.environment().put(each.getKey(), each.getValue().getAsString()));
    try {
      Process process = starting.start();
      BufferedReader says = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
      return new Gson().toJsonTree(Map.of("url", "http://127.0.0.1:" + says.readLine()));
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  private static byte[] onward() {
    Map<String, String> carried = new HashMap<>();
    GlobalOpenTelemetry.getPropagators()
        .getTextMapPropagator()
        .inject(Context.current(), carried, (into, name, value) -> into.put(name, value));
    return carried.getOrDefault("baggage", "").getBytes(StandardCharsets.ISO_8859_1);
  }

  private static int tomcat() throws IOException, LifecycleException {
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
    tomcat.setPort(0);
    tomcat.setHostname("127.0.0.1");
    String base = tomcat.addContext("", null).getPath();
    tomcat.addServlet(base, "front", new Echo()).addMapping("/*");
    tomcat.getConnector().setProperty("maxHttpRequestHeaderSize", MAX_HEADERS);
    tomcat.start();
    return tomcat.getConnector().getLocalPort();
  }

  private static int webflux() {
    ReactorHttpHandlerAdapter handler =
        new ReactorHttpHandlerAdapter(
            RouterFunctions.toHttpHandler(
                RouterFunctions.route(
                    RequestPredicates.all(),
                    request -> Mono.fromCallable(Front::onward).flatMap(ServerResponse.ok()::bodyValue))));
    HttpServer server =
        HttpServer.create().httpRequestDecoder(decoder -> decoder.maxHeaderSize(Integer.parseInt(MAX_HEADERS)));
    return server.host("127.0.0.1").port(0).handle(handler).bindNow().port();
  }

  private static final class Echo extends HttpServlet {
    private static final long serialVersionUID = 1;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
      boolean asksForSpans = request.getRequestURI().equals("/spans");
      response
          .getOutputStream()
          .write(asksForSpans ? Host.ended().toString().getBytes(StandardCharsets.UTF_8) : onward());
    }
  }
}
