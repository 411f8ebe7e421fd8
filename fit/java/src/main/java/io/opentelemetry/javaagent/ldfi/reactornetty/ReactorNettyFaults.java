package io.opentelemetry.javaagent.ldfi.reactornetty;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.timeout.ReadTimeoutHandler;
import io.netty.util.AttributeKey;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.netty.Failures;
import java.lang.reflect.Field;
import java.time.Duration;
import java.util.Map;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;
import reactor.netty.Connection;
import reactor.netty.NettyPipeline;
import reactor.netty.http.client.HttpClientRequest;

/** What a request of Reactor Netty's comes to when a fault hits it. No thread is held up. */
public final class ReactorNettyFaults {
  /** Where the agent leaves the context that the request is sent in. */
  private static final AttributeKey<Context> LEFT =
      AttributeKey.valueOf(
          "io.opentelemetry.javaagent.shaded.instrumentation.netty.v4_1.internal.AttributeKeys#client-parent-context");

  private ReactorNettyFaults() {}

  /** What is to be sent instead; null where it is left to what was put into the connection's pipeline, if anything. */
  @SuppressWarnings("try") // a scope is held, and not asked
  public static Publisher<Void> instead(Connection connection) {
    Channel channel = connection.channel();
    Context context = channel.attr(LEFT).get();
    if (context == null || !Gate.isArmed(context)) {
      return null;
    }
    long patience = patience(connection);
    Fault fault;
    try (Scope call = context.makeCurrent()) {
      fault = Gate.pass(possible -> can(possible, connection, patience));
    }
    if (fault == null) {
      return null;
    }
    if (fault.isUnconnected()) {
      return Mono.error(Failures.unconnected(fault, channel));
    }
    channel.pipeline().addAfter(NettyPipeline.HttpCodec, Withheld.NAME, new Withheld(fault, isToHead(connection)));
    return null;
  }

  private static boolean can(Fault fault, Connection connection, long patience) {
    ChannelPipeline pipeline = connection.channel().pipeline();
    if (pipeline.get(NettyPipeline.HttpCodec) == null || pipeline.get(Withheld.NAME) != null) {
      return false; // a stream of HTTP/2, of which others are on the same connection
    }
    if (fault.is("timeout")) {
      return fault.outlasts(patience);
    }
    return fault.isUnconnected()
        || fault.is("reset")
        || fault.is("delay")
        || fault.isAnswer() && !(fault.needsBody() && isToHead(connection));
  }

  private static boolean isToHead(Connection connection) {
    return "HEAD".equals(((HttpClientRequest) connection).method().name());
  }

  /** Milliseconds that its caller waits for an answer; 0: for ever, as far as the connection knows. */
  private static long patience(Connection connection) {
    long least = responseTimeout(connection);
    for (Map.Entry<String, ChannelHandler> each : connection.channel().pipeline()) {
      if (each.getValue() instanceof ReadTimeoutHandler) {
        long read = ((ReadTimeoutHandler) each.getValue()).getReaderIdleTimeInMillis();
        least = least == 0 || read == 0 ? least + read : Math.min(least, read);
      }
    }
    return least;
  }

  private static long responseTimeout(Connection connection) {
    try {
      Field field = connection.getClass().getDeclaredField("responseTimeout");
      field.setAccessible(true);
      Duration timeout = (Duration) field.get(connection);
      return timeout == null ? 0 : timeout.toMillis();
    } catch (ReflectiveOperationException | RuntimeException changed) {
      return 0;
    }
  }
}
