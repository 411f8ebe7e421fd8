package io.opentelemetry.javaagent.ldfi.grpc;

import io.grpc.Attributes;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.internal.ClientStream;
import io.grpc.internal.ClientStreamListener;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.function.Supplier;

/**
 * A stream that is opened later: what is asked of it until then is asked in the same order. It is a proxy, since what
 * streams can be asked differs between releases of gRPC.
 */
public final class Later implements InvocationHandler {
  private final Queue<Asked> waiting = new ArrayDeque<>();
  private ClientStream opened;
  private ClientStreamListener listener;
  private boolean opening;
  private boolean cancelled;

  /** What was asked of the stream. */
  private static final class Asked {
    final Method method;
    final Object[] arguments;

    Asked(Method method, Object[] arguments) {
      this.method = method;
      this.arguments = arguments;
    }
  }

  ClientStream stream() {
    Class<?> kind = ClientStream.class;
    return (ClientStream) Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind}, this);
  }

  /** Opens it, unless it was given up. */
  void goOn(Supplier<ClientStream> opens) {
    synchronized (this) {
      if (cancelled) {
        return;
      }
      opening = true;
    }
    ClientStream stream = opens.get();
    while (true) {
      Asked next;
      synchronized (this) {
        next = waiting.poll();
        if (next == null) {
          opened = stream;
          return;
        }
      }
      ask(stream, next); // outside of the lock: listeners have locks of their own
    }
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
    Asked asked = new Asked(method, arguments);
    ClientStream stream;
    ClientStreamListener told = null;
    synchronized (this) {
      stream = opened;
      if (stream == null) {
        switch (method.getName()) {
          case "isReady":
            return false;
          case "getAttributes":
            return Attributes.EMPTY;
          case "appendTimeoutInsight":
            return null;
          case "hashCode":
            return System.identityHashCode(proxy);
          case "equals":
            return proxy == arguments[0];
          case "toString":
            return "a stream that is opened later";
          case "start":
            listener = (ClientStreamListener) arguments[0];
            waiting.add(asked);
            return null;
          case "cancel":
            waiting.add(asked);
            if (opening || cancelled) {
              return null; // then the stream itself tells
            }
            cancelled = true;
            told = listener;
            break;
          default:
            waiting.add(asked);
            return null;
        }
      }
    }
    if (stream != null) {
      return ask(stream, asked);
    }
    if (told != null) {
      told.closed((Status) arguments[0], ClientStreamListener.RpcProgress.PROCESSED, new Metadata());
    }
    return null;
  }

  private static Object ask(ClientStream stream, Asked asked) {
    try {
      return asked.method.invoke(stream, asked.arguments);
    } catch (IllegalAccessException never) {
      throw new IllegalStateException(never);
    } catch (InvocationTargetException failed) {
      if (failed.getCause() instanceof RuntimeException) {
        throw (RuntimeException) failed.getCause();
      }
      throw new IllegalStateException(failed.getCause());
    }
  }
}
