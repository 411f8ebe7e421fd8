package io.opentelemetry.javaagent.ldfi;

import io.opentelemetry.context.Context;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Lets calls wait that no thread waits for. */
public final class Timer {
  private static final class Holder {
    static final ScheduledThreadPoolExecutor CLOCK =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread thread = new Thread(task, "ldfi-fit");
              thread.setDaemon(true);
              return thread;
            });
  }

  private Timer() {}

  /** Runs what goes on after so many milliseconds, on the caller's executor and in the call's context. */
  public static void after(long milliseconds, Executor on, Runnable goesOn) {
    Runnable inContext = Context.current().wrap(goesOn);
    Holder.CLOCK.schedule(() -> on.execute(inContext), milliseconds, TimeUnit.MILLISECONDS);
  }
}
