package dev.ldfi.fit.edge;

import dev.ldfi.fit.Json;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Asks for devices that may be stamped if the control plane grants it, while their requests wait, for as long as
 * nobody notices. After a failure nobody is asked for a while, so that a service in trouble costs requests nothing.
 */
final class Asks {
  /** How long a request waits for its device to be granted, in milliseconds, whatever it is that takes so long. */
  static final int WITHIN = 20;

  private static final int STRAY = 2000; // a late answer is waited for, to have its connection again; in milliseconds
  private static final int AT_ONCE = 4; // each over a connection that is kept
  private static final int REMEMBERED = 1000;

  private final Poll poll;
  private final Executor unseen;
  private final int within;
  private final ThreadPoolExecutor askers =
      new ThreadPoolExecutor(AT_ONCE, AT_ONCE, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), Asks::asker);
  private final Map<Asking, CompletableFuture<Held>> pending = new HashMap<>();
  private final Rests rests = new Rests(REMEMBERED);

  Asks(Poll poll, Executor unseen, int within) {
    this.poll = poll;
    this.unseen = unseen;
    this.within = within;
    askers.allowCoreThreadTimeOut(true);
  }

  private static Thread asker(Runnable asks) {
    Thread thread = new Thread(asks, "ldfi-fit-edge-asks");
    thread.setDaemon(true);
    thread.setContextClassLoader(null); // hold on to no application
    return thread;
  }

  /** Asks for a device by rules of this version, unless somebody does already; null where it is not granted. */
  Admission ask(String version, Asking whom) {
    CompletableFuture<Held> mine = new CompletableFuture<>();
    CompletableFuture<Held> theirs;
    synchronized (this) {
      theirs = pending.get(whom);
      Rests.Why why = theirs == null ? rests.why(whom.experiment) : Rests.Why.NOT;
      if (why != Rests.Why.NOT) {
        if (why == Rests.Why.FAILED) {
          poll.allowances.tooLate();
        }
        return null;
      }
      pending.putIfAbsent(whom, mine);
    }
    if (theirs != null) {
      Held under = theirs.join();
      return under == null ? null : new Admission(under, true);
    }
    Held under = null;
    try {
      under = askFor(version, whom);
    } finally {
      synchronized (this) {
        pending.remove(whom);
      }
      mine.complete(under);
    }
    return under == null ? null : new Admission(under, false);
  }

  /** Asks, and settles what comes of it. */
  private Held askFor(String version, Asking whom) {
    Moment began = Moment.now();
    int number = poll.allowances.ask();
    Grant told = answerTo(number, version, whom);
    synchronized (this) {
      if (told == null) {
        rests.failed(began);
      } else {
        rests.answered(whom.experiment, told.granted);
      }
    }
    if (told == null) {
      poll.allowances.tooLate();
    }
    Held under = null;
    if (told != null && told.granted && told.version.equals(version)) {
      under = poll.known.grant(version, began.after(told.seconds));
    }
    boolean enrolled = poll.allowances.settled(number, under != null, whom);
    poll.tell();
    return enrolled ? under : null;
  }

  /** Has the answer to an ask, or gives it up for good: null. A stray answer is read, and not acted upon. */
  private Grant answerTo(int number, String version, Asking whom) {
    FutureTask<Grant> answer = new FutureTask<>(() -> post(number, version, whom));
    askers.execute(() -> unseen.execute(answer));
    try {
      return answer.get(within, TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException late) {
      return null;
    } catch (InterruptedException ends) {
      Thread.currentThread().interrupt();
      return null;
    } finally {
      answer.cancel(false);
    }
  }

  private Grant post(int number, String version, Asking whom) throws IOException {
    String said =
        String.format(
            "{\"edge\":\"%s\",\"experiment\":\"%s\",\"arm\":\"%s\",\"ask\":%d,\"version\":%s}",
            poll.edge, whom.experiment, whom.arm.word(), number, Json.quoted(version));
    return Grant.read(poll.service.post("/api/v1/edge/asks", said, STRAY));
  }
}
