package io.opentelemetry.javaagent.ldfi.netty;

import io.netty.channel.AbstractChannel;
import io.netty.channel.Channel;
import io.netty.channel.unix.Errors;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.UnknownHostException;

/** The exceptions of Netty's transports, each in its own words. */
public final class Failures {
  private Failures() {}

  private static boolean isNative(Channel channel) {
    String transport = channel.getClass().getName();
    return transport.startsWith("io.netty.channel.epoll.") || transport.startsWith("io.netty.channel.kqueue.");
  }

  public static IOException reset(Channel channel) {
    return isNative(channel) ? Native.reset() : new SocketException("Connection reset");
  }

  public static ConnectException refused(Channel channel) {
    ConnectException refused = isNative(channel) ? Native.refused() : new ConnectException("Connection refused");
    try {
      Class<?> annotated = Class.forName(AbstractChannel.class.getName() + "$AnnotatedConnectException");
      Constructor<?> made = annotated.getDeclaredConstructor(ConnectException.class, SocketAddress.class);
      made.setAccessible(true);
      return (ConnectException) made.newInstance(refused, asked(channel.remoteAddress()));
    } catch (ReflectiveOperationException | RuntimeException changed) {
      return refused;
    }
  }

  /** The address as it stands before there is a connection: one that was given in numbers has no name. */
  private static SocketAddress asked(SocketAddress remote) {
    if (!(remote instanceof InetSocketAddress)) {
      return remote;
    }
    InetSocketAddress connected = (InetSocketAddress) remote;
    InetAddress address = connected.getAddress();
    if (!connected.getHostString().equals(address.getHostAddress())) {
      return remote;
    }
    try {
      return new InetSocketAddress(InetAddress.getByAddress(address.getAddress()), connected.getPort());
    } catch (UnknownHostException never) {
      return remote;
    }
  }

  /** Those of transports that are not Java's, which are not everywhere. */
  static final class Native {
    private Native() {}

    static IOException reset() {
      return new Errors.NativeIoException("recvAddress", Errors.ERRNO_ECONNRESET_NEGATIVE);
    }

    static ConnectException refused() {
      return new ConnectException("finishConnect(..) failed: Connection refused");
    }
  }
}
