package io.opentelemetry.javaagent.ldfi.lettuce;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.RedisException;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.internal.ExceptionFactory;
import io.lettuce.core.protocol.CommandHandler;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.channel.ChannelHandlerContext;
import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.Inside;
import io.opentelemetry.javaagent.ldfi.Redis;
import io.opentelemetry.javaagent.ldfi.netty.Failures;
import java.time.Duration;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;

/** A command that is about to be written, by the thread that writes all of its connection. */
final class Call {
  private final ChannelHandlerContext before;
  private final CommandHandler handler;
  private final RedisCommand<?, ?, ?> command;
  private final ClientOptions options;
  private final boolean awaited;
  private final long patience;

  /**
   * A command.
   *
   * @param before from where it comes to the encoder
   * @param awaited how long its thread waits for it; null where none does
   */
  Call(ChannelHandlerContext before, CommandHandler handler, RedisCommand<?, ?, ?> command, Duration awaited) {
    this.before = before;
    this.handler = handler;
    this.command = command;
    this.options = (ClientOptions) Inside.of(handler, "clientOptions");
    this.awaited = awaited != null;
    this.patience = patience(awaited);
  }

  /** Milliseconds until Lettuce ends it; 0: it does not. */
  private long patience(Duration awaited) {
    TimeoutOptions timeouts = options.getTimeoutOptions();
    if (timeouts.isTimeoutCommands() && !timeouts.isApplyConnectionTimeout()) {
      TimeoutOptions.TimeoutSource source = timeouts.getSource();
      long said = source.getTimeUnit().toMillis(source.getTimeout(command));
      return said < 0 && awaited != null ? awaited.toMillis() : Math.max(said, 0);
    }
    if (awaited != null) {
      return awaited.toMillis();
    }
    Object connection = Inside.of(handler.getEndpoint(), "connectionFacade");
    boolean ends = timeouts.isTimeoutCommands() && connection instanceof StatefulConnection;
    return ends ? ((StatefulConnection<?, ?>) connection).getTimeout().toMillis() : 0;
  }

  boolean can(Fault fault) {
    switch (fault.kind) {
      case "timeout":
        return fault.outlasts(patience);
      case "delay":
      case "reset":
        return true;
      case "error":
      case "redis:lost":
        return gone(fault) != null;
      case "redis:loading":
        return command.getOutput() != null;
      case "redis:readonly":
        return command.getOutput() != null && Redis.refuses(Gate.verb());
      default:
        return fault.isUnconnected() && gone(fault) != null;
    }
  }

  /** Has it fail, or be late; true, since it is not written now. */
  boolean strike(Fault fault, Line line) {
    RedisCommand<?, ?, ?> expected = withdraw();
    switch (fault.kind) {
      case "delay":
      case "timeout":
        line.hold(this, expected, fault.outlasts(patience) ? 0 : fault.longest);
        return true;
      case "redis:loading":
        answer(Redis.LOADING);
        return true;
      case "redis:readonly":
        answer(Redis.READ_ONLY);
        return true;
      default:
        Throwable failure = fault.is("reset") ? Failures.reset(before.channel()) : gone(fault);
        later(() -> command.completeExceptionally(failure));
        return true;
    }
  }

  /**
   * What it fails with when its server is gone. A client that connects again keeps commands for then, so whoever waits
   * for one sees that its time is over: here at once. Null where nobody would see anything.
   */
  private Throwable gone(Fault fault) {
    boolean again = options.isAutoReconnect();
    if (isRejecting(again) && (fault.isUnconnected() || !again)) {
      return new RedisException(
          fault.isUnconnected() ? "Currently not connected. Commands are rejected." : "Connection disconnected");
    }
    return fault.is("redis:lost") || patience == 0 ? null : late();
  }

  /** What tells that its time is over: who waits for it, or a timer, which says what it was. */
  private Throwable late() {
    Duration passed = Duration.ofMillis(patience);
    return awaited
        ? ExceptionFactory.createTimeoutException(passed)
        : ExceptionFactory.createTimeoutException(command.getType().toString(), passed);
  }

  /** Whether it takes no commands while it has no connection. */
  private boolean isRejecting(boolean again) {
    ClientOptions.DisconnectedBehavior chosen = options.getDisconnectedBehavior();
    return chosen == ClientOptions.DisconnectedBehavior.REJECT_COMMANDS
        || chosen == ClientOptions.DisconnectedBehavior.DEFAULT && !again;
  }

  private void answer(String says) {
    later(
        () -> {
          command.getOutput().setError(says);
          command.complete();
        });
  }

  /** Does it when this thread is done with what it writes. */
  private void later(Runnable rest) {
    before.executor().execute(rest);
  }

  /** Takes it from what answers are expected for: what stood there for it. */
  RedisCommand<?, ?, ?> withdraw() {
    for (Iterator<RedisCommand<?, ?, ?>> each = handler.getStack().iterator(); each.hasNext(); ) {
      RedisCommand<?, ?, ?> expected = each.next();
      if (expected == command || expected.equals(command)) {
        each.remove();
        return expected;
      }
    }
    return command;
  }

  /** Does something when it has been answered, or given up. */
  void whenDone(Runnable then) {
    ((CompleteableCommand<?>) command).onComplete((answer, failure) -> later(then));
  }

  void after(long milliseconds, Runnable then) {
    before.executor().schedule(then, milliseconds, TimeUnit.MILLISECONDS);
  }

  /** Writes it after all, unless it was given up. */
  void write(RedisCommand<?, ?, ?> expected) {
    if (command.isDone()) {
      return;
    }
    if (before.isRemoved() || !before.channel().isActive()) {
      ((RedisChannelWriter) handler.getEndpoint()).write(command); // which keeps it, or not
      return;
    }
    handler.getStack().add(expected);
    before.writeAndFlush(command);
  }
}
