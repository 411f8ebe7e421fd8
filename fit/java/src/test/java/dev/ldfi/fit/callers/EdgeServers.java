package dev.ldfi.fit.callers;

import com.sun.net.httpserver.HttpExchange;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.apache.catalina.Wrapper;
import org.apache.catalina.startup.Tomcat;
import org.springframework.http.server.reactive.ReactorHttpHandlerAdapter;
import org.springframework.web.reactive.function.server.RequestPredicates;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.netty.http.server.HttpServer;

/** Servers that the agent instruments, each of which serves the same page. */
final class EdgeServers {
  private static final String BAGGAGE = "baggage";
  private static final int MAX_BODY = 1 << 16; // bytes

  private EdgeServers() {}

  /** Serves a request to a path, given the values of {@code baggage} in its header and its trailer; it may block. */
  interface Page {
    void serve(String path, List<String> baggage);
  }

  /** Starts a server and returns its port. */
  interface Starting {
    int start(Page page) throws Exception;
  }

  static Map<String, Starting> all() {
    Map<String, Starting> all = new LinkedHashMap<>();
    all.put("servlet", page -> tomcat(page, false));
    all.put("servlet, asynchronous", page -> tomcat(page, true));
    all.put("JDK", EdgeServers::jdk);
    all.put("WebFlux", EdgeServers::webflux);
    all.put("Reactor Netty", EdgeServers::reactorNetty);
    all.put("Netty", EdgeServers::netty);
    return all;
  }

  private static int jdk(Page page) throws IOException {
    var server =
        com.sun.net.httpserver.HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/", exchange -> answer(exchange, page));
    server.start();
    return server.getAddress().getPort();
  }

  private static void answer(HttpExchange exchange, Page page) throws IOException {
    exchange.getRequestBody().readAllBytes();
    page.serve(exchange.getRequestURI().getPath(), exchange.getRequestHeaders().getOrDefault(BAGGAGE, List.of()));
    exchange.sendResponseHeaders(200, -1);
    exchange.close();
  }

  private static int tomcat(Page page, boolean asynchronous) throws Exception {
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
    tomcat.setPort(0);
    tomcat.setHostname("127.0.0.1");
    tomcat.getConnector().setProperty("allowedTrailerHeaders", BAGGAGE); // by itself it drops them all
    Wrapper servlet = tomcat.addServlet(tomcat.addContext("", null).getPath(), "edge", new Served(page, asynchronous));
    servlet.setAsyncSupported(true);
    servlet.addMapping("/*");
    tomcat.start();
    return tomcat.getConnector().getLocalPort();
  }

  private static final class Served extends HttpServlet {
    private static final long serialVersionUID = 1;

    private final transient Page page;
    private final boolean asynchronous;

    Served(Page page, boolean asynchronous) {
      this.page = page;
      this.asynchronous = asynchronous;
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
      request.getInputStream().readAllBytes();
      List<String> baggage = new ArrayList<>(Collections.list(request.getHeaders(BAGGAGE)));
      Optional.ofNullable(request.getTrailerFields().get(BAGGAGE)).ifPresent(baggage::add);
      String path = request.getRequestURI();
      if (asynchronous) {
        AsyncContext goesOn = request.startAsync();
        goesOn.start(
            () -> {
              page.serve(path, baggage);
              goesOn.complete();
            });
      } else {
        page.serve(path, baggage);
      }
    }
  }

  private static int webflux(Page page) {
    var handler =
        new ReactorHttpHandlerAdapter(
            RouterFunctions.toHttpHandler(
                RouterFunctions.route(RequestPredicates.all(), request -> reactive(page, request))));
    return HttpServer.create().host("127.0.0.1").port(0).handle(handler).bindNow().port();
  }

  private static Mono<ServerResponse> reactive(Page page, ServerRequest request) {
    List<String> baggage = request.headers().header(BAGGAGE);
    return request
        .bodyToMono(String.class)
        .defaultIfEmpty("")
        .publishOn(Schedulers.boundedElastic())
        .doOnNext(body -> page.serve(request.path(), baggage))
        .flatMap(body -> ServerResponse.ok().build());
  }

  private static int reactorNetty(Page page) {
    return HttpServer.create()
        .host("127.0.0.1")
        .port(0)
        .handle(
            (request, response) ->
                request
                    .receiveObject()
                    .ofType(LastHttpContent.class)
                    .map(end -> both(request.requestHeaders(), end.trailingHeaders()))
                    .last(request.requestHeaders().getAll(BAGGAGE))
                    .publishOn(Schedulers.boundedElastic())
                    .doOnNext(baggage -> page.serve(request.uri(), baggage))
                    .then(response.status(200).send()))
        .bindNow()
        .port();
  }

  private static List<String> both(HttpHeaders header, HttpHeaders trailer) {
    List<String> baggage = new ArrayList<>(header.getAll(BAGGAGE));
    baggage.addAll(trailer.getAll(BAGGAGE));
    return baggage;
  }

  private static int netty(Page page) throws InterruptedException {
    var handlers = Executors.newCachedThreadPool();
    Channel listening =
        new ServerBootstrap()
            .group(new NioEventLoopGroup(1))
            .channel(NioServerSocketChannel.class)
            .childHandler(
                new ChannelInitializer<>() {
                  @Override
                  protected void initChannel(Channel channel) {
                    channel.pipeline().addLast(new HttpServerCodec(), new HttpObjectAggregator(MAX_BODY));
                    channel.pipeline().addLast(new Handling(page, handlers));
                  }
                })
            .bind(InetAddress.getLoopbackAddress(), 0)
            .sync()
            .channel();
    return ((InetSocketAddress) listening.localAddress()).getPort();
  }

  private static final class Handling extends SimpleChannelInboundHandler<FullHttpRequest> {
    private final Page page;
    private final Executor handlers;

    Handling(Page page, Executor handlers) {
      this.page = page;
      this.handlers = handlers;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext channel, FullHttpRequest request) {
      List<String> baggage = both(request.headers(), request.trailingHeaders());
      String path = request.uri();
      handlers.execute(
          () -> {
            page.serve(path, baggage);
            var answer = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
            answer.headers().set(HttpHeaderNames.CONTENT_LENGTH, 0);
            channel.writeAndFlush(answer).addListener(ChannelFutureListener.CLOSE);
          });
    }
  }
}
