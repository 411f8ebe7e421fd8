package io.opentelemetry.javaagent.ldfi.reactornetty;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.netty.Failures;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.TimeUnit;

/**
 * Keeps a request from its connection while its client believes that it was sent. What becomes of it comes in from
 * where answers do, so the client's own timers, retries and errors do the rest.
 */
public final class Withheld extends ChannelDuplexHandler {
  static final String NAME = "ldfi-fit";

  private final Fault fault;
  private final boolean toHead;
  private final Queue<Object> kept = new ArrayDeque<>();

  Withheld(Fault fault, boolean toHead) {
    this.fault = fault;
    this.toHead = toHead;
  }

  @Override
  public void handlerAdded(ChannelHandlerContext connection) {
    if (fault.is("delay") || fault.is("timeout")) {
      connection.executor().schedule(() -> goOn(connection), fault.longest, TimeUnit.MILLISECONDS);
    }
  }

  @Override
  public void write(ChannelHandlerContext connection, Object part, ChannelPromise written) {
    boolean isLast = part instanceof LastHttpContent;
    kept.add(part);
    written.trySuccess();
    if (isLast && (fault.is("reset") || fault.isAnswer())) {
      connection.executor().execute(() -> strike(connection));
    }
  }

  /** Sends the request after all, unless its client has given it up. */
  private void goOn(ChannelHandlerContext connection) {
    if (connection.isRemoved()) {
      return;
    }
    while (!kept.isEmpty()) {
      connection.write(kept.remove());
    }
    connection.flush();
    connection.pipeline().remove(this);
  }

  private void strike(ChannelHandlerContext connection) {
    if (connection.isRemoved()) {
      return;
    }
    if (fault.is("reset")) {
      connection.fireExceptionCaught(Failures.reset(connection.channel()));
    } else {
      answer(connection);
    }
    connection.close();
  }

  private void answer(ChannelHandlerContext connection) {
    HttpResponseStatus status = new HttpResponseStatus(fault.status(), "Fault Injected");
    HttpResponse head = new DefaultHttpResponse(HttpVersion.HTTP_1_1, status);
    head.headers().set("Content-Type", fault.contentType());
    head.headers().set("Content-Length", fault.announced());
    head.headers().set("Connection", "close");
    connection.fireChannelRead(head);
    byte[] body = toHead ? new byte[0] : fault.body();
    if (body.length > 0) {
      connection.fireChannelRead(new DefaultHttpContent(Unpooled.wrappedBuffer(body)));
    }
    if (toHead || fault.announced() == body.length) {
      connection.fireChannelRead(LastHttpContent.EMPTY_LAST_CONTENT);
    }
    connection.fireChannelReadComplete();
  }

  @Override
  public void handlerRemoved(ChannelHandlerContext connection) {
    while (!kept.isEmpty()) {
      ReferenceCountUtil.release(kept.remove());
    }
  }
}
