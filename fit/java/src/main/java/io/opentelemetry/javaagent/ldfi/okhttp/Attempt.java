package io.opentelemetry.javaagent.ldfi.okhttp;

import io.opentelemetry.javaagent.ldfi.Fault;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.concurrent.TimeUnit;
import okhttp3.Interceptor;

/** One attempt to have a request answered, with what OkHttp itself does when it fails: that it tries again, or not. */
final class Attempt {
  private static final int LOOKS = 10; // milliseconds between them, at whether the call is cancelled

  private final Interceptor.Chain chain;
  private Object exchange;
  private Method failing;
  private Method ending;

  Attempt(Interceptor.Chain chain) {
    this.chain = chain;
  }

  boolean can(Fault fault) {
    if (fault.isUnconnected()) {
      return chain.connection() != null;
    }
    if (!isWithinReach()) {
      return false;
    }
    if (fault.is("timeout")) {
      return fault.outlasts(patience());
    }
    return fault.is("reset")
        || fault.is("delay")
        || fault.isAnswer() && !(fault.needsBody() && chain.request().method().equals("HEAD"));
  }

  /** Milliseconds that it bears a silent dependency; 0: until the call is cancelled, which its timer does as well. */
  int silence() {
    return chain.readTimeoutMillis();
  }

  /** Milliseconds that its caller waits for an answer; 0: for ever. */
  private int patience() {
    long call = TimeUnit.NANOSECONDS.toMillis(chain.call().timeout().timeoutNanos());
    int read = silence();
    return call == 0 || read == 0 ? (int) call + read : (int) Math.min(call, read);
  }

  /** Waits; whether to the end, as nobody has cancelled the call. */
  boolean hangs(long milliseconds) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
    try {
      while (!chain.call().isCanceled() && end - System.nanoTime() > 0) {
        Thread.sleep(LOOKS);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      return false;
    }
    return !chain.call().isCanceled();
  }

  void fails(IOException failure) {
    invoke(failing, failure);
  }

  /** Gives its connection back: nothing more is read from it. */
  void end() {
    invoke(ending);
  }

  private void invoke(Method method, Object... arguments) {
    try {
      method.invoke(exchange, arguments);
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException(changed);
    }
  }

  /** Whether OkHttp can be told of what becomes of it. */
  private boolean isWithinReach() {
    try {
      Field field = chain.getClass().getDeclaredField("exchange");
      field.setAccessible(true);
      exchange = field.get(chain);
      failing = exchange.getClass().getDeclaredMethod("trackFailure", IOException.class);
      failing.setAccessible(true);
      ending = exchange.getClass().getMethod("detachWithViolence");
      return true;
    } catch (ReflectiveOperationException | RuntimeException changed) {
      return false;
    }
  }
}
