package io.opentelemetry.javaagent.ldfi.netty;

import io.netty.channel.AbstractChannel;
import io.netty.channel.Channel;
import io.netty.channel.unix.Errors;
import io.opentelemetry.javaagent.ldfi.Fault;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.Arrays;

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

  /** What is said of a connection, here one that there is, that cannot be made in the way of this fault. */
  public static IOException unconnected(Fault fault, Channel channel) {
    IOException failure = fault.unconnected();
    if (failure instanceof UnknownHostException) {
      return Lookup.failed(fault.host, (UnknownHostException) failure);
    }
    return failure instanceof ConnectException ? annotated((ConnectException) failure, channel) : failure;
  }

  private static ConnectException annotated(ConnectException failure, Channel channel) {
    ConnectException refused = isNative(channel) ? Native.connecting(failure) : failure;
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

    static ConnectException connecting(ConnectException failure) {
      return new ConnectException("finishConnect(..) failed: " + failure.getMessage());
    }
  }

  /** What Netty's own resolver says, by whom Reactor Netty looks names up where that is there. */
  static final class Lookup {
    private static final String RESOLVER = "io.netty.resolver.dns.DnsNameResolver";
    private static final String CAUSE = "io.netty.resolver.dns.DnsErrorCauseException";

    private Lookup() {}

    static UnknownHostException failed(String host, UnknownHostException javas) {
      try {
        Class<?> resolver = Class.forName(RESOLVER);
        Object types = value(resolver, "DEFAULT_RESOLVE_ADDRESS_TYPES");
        Object[] asked = (Object[]) value(resolver, types + "_RESOLVED_RECORD_TYPES");
        String times = asked.length > 1 ? " after " + asked.length + " queries " : "";
        UnknownHostException failure =
            new UnknownHostException("Failed to resolve '" + host + "' " + Arrays.toString(asked) + times);
        Class<?> code = Class.forName("io.netty.handler.codec.dns.DnsResponseCode");
        Constructor<?> made = Class.forName(CAUSE).getDeclaredConstructor(String.class, code);
        made.setAccessible(true);
        Object unknown = code.getField("NXDOMAIN").get(null);
        failure.initCause((Throwable) made.newInstance("Query failed with NXDOMAIN", unknown));
        return failure;
      } catch (ReflectiveOperationException | RuntimeException notThere) {
        return javas;
      }
    }

    private static Object value(Class<?> of, String constant) throws ReflectiveOperationException {
      Field field = of.getDeclaredField(constant);
      field.setAccessible(true);
      return field.get(null);
    }
  }
}
