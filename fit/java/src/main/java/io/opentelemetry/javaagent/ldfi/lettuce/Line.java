package io.opentelemetry.javaagent.ldfi.lettuce;

import io.lettuce.core.protocol.RedisCommand;
import io.netty.channel.Channel;
import io.netty.util.AttributeKey;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;

/**
 * What one request has to say over one connection. Redis answers in the order in which it is asked: while a command is
 * held back, so are those that follow, of the same request and of no other.
 */
final class Line {
  private static final AttributeKey<Map<String, Line>> LINES = AttributeKey.valueOf("ldfi-fit-lettuce");

  private final Map<String, Line> lines;
  private final String request;
  private final Queue<Runnable> following = new ArrayDeque<>();

  private Line(Map<String, Line> lines, String request) {
    this.lines = lines;
    this.request = request;
  }

  /** That of a request. */
  static Line of(Channel connection, String request) {
    Map<String, Line> lines = connection.attr(LINES).get();
    if (lines == null) {
      lines = new HashMap<>(); // one thread writes all of a connection
      connection.attr(LINES).set(lines);
    }
    Line line = lines.get(request);
    return line == null ? new Line(lines, request) : line;
  }

  boolean isHeld() {
    return lines.get(request) == this;
  }

  /** Holds back a command: for so many milliseconds, or (0) until it is given up. */
  void hold(Call call, RedisCommand<?, ?, ?> expected, long milliseconds) {
    lines.put(request, this);
    call.whenDone(this::goOn);
    if (milliseconds > 0) {
      call.after(
          milliseconds,
          () -> {
            goOnAfter(() -> call.write(expected));
          });
    }
  }

  /** Has a command wait for the first; true, since it is not written now. */
  boolean add(Call call) {
    RedisCommand<?, ?, ?> expected = call.withdraw();
    following.add(() -> call.write(expected));
    return true;
  }

  private void goOnAfter(Runnable first) {
    if (lines.remove(request, this)) {
      first.run();
      following.forEach(Runnable::run);
    }
  }

  private void goOn() {
    goOnAfter(() -> {});
  }
}
