package io.opentelemetry.javaagent.ldfi.lettuce;

import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.protocol.CommandHandler;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.RedisCommand;
import io.lettuce.core.protocol.TracedCommand;
import io.lettuce.core.protocol.TransactionalCommand;
import io.netty.channel.ChannelHandlerContext;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.Scope;
import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.Inside;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * What a command comes to when a fault hits it: it is not written. Its connection serves others, and stays as it is; no
 * thread is held up.
 */
public final class LettuceFaults {
  /** How long a thread waits for the commands that it gives. */
  private static final ContextKey<Duration> PATIENCE = ContextKey.named("ldfi-fit-lettuce");

  /** What says something of a connection, for all that comes after it. */
  private static final Set<String> OF_CONNECTIONS =
      new HashSet<>(
          Arrays.asList(
              "AUTH CLIENT DISCARD EXEC HELLO MULTI QUIT READONLY READWRITE RESET SELECT UNWATCH WATCH".split(" ")));

  private LettuceFaults() {}

  /** Notes that this thread waits for what it has the connection do; null where nothing is to be noted. */
  public static AutoCloseable waiting(StatefulConnection<?, ?> connection) {
    return Gate.isArmed() ? Context.current().with(PATIENCE, connection.getTimeout()).makeCurrent() : null;
  }

  /** Whether a command is not to be written. */
  @SuppressWarnings("try") // a scope is held, and not asked
  public static boolean withholds(ChannelHandlerContext connection, RedisCommand<?, ?, ?> command) {
    TracedCommand<?, ?, ?> traced = CommandWrapper.unwrap(command, TracedCommand.class);
    Context context = traced == null ? null : (Context) Inside.of(traced.getSpan(), "context");
    if (context == null || !Gate.isArmed(context)) {
      return false;
    }
    CommandHandler handler = connection.pipeline().get(CommandHandler.class);
    if (handler == null || handler.getClass() != CommandHandler.class || isOfConnection(command)) {
      return false; // of those that listen, too
    }
    Call call = new Call(connection.pipeline().context(handler), handler, command, context.get(PATIENCE));
    Line line = Line.of(connection.channel(), Span.fromContext(context).getSpanContext().getTraceId());
    if (line.isHeld()) {
      return line.add(call);
    }
    Fault fault;
    try (Scope within = context.makeCurrent()) {
      fault = Gate.passStatement(call::can);
    }
    return fault != null && call.strike(fault, line);
  }

  private static boolean isOfConnection(RedisCommand<?, ?, ?> command) {
    return OF_CONNECTIONS.contains(command.getType().toString())
        || CommandWrapper.unwrap(command, TransactionalCommand.class) != null;
  }
}
