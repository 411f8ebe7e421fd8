package io.opentelemetry.javaagent.ldfi.r2dbc;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.util.ReferenceCountUtil;
import io.opentelemetry.javaagent.ldfi.netty.Failures;

/** Keeps what is written from its connection, and tears that down. */
public final class Cut extends ChannelOutboundHandlerAdapter {
  private final boolean reset;
  private boolean struck;

  Cut(boolean reset) {
    this.reset = reset;
  }

  @Override
  public void write(ChannelHandlerContext connection, Object message, ChannelPromise written) {
    ReferenceCountUtil.release(message);
    written.trySuccess();
    if (!struck) {
      struck = true;
      connection.executor().execute(() -> strike(connection));
    }
  }

  private void strike(ChannelHandlerContext connection) {
    if (reset) {
      connection.fireExceptionCaught(Failures.reset(connection.channel()));
    }
    connection.close();
  }
}
