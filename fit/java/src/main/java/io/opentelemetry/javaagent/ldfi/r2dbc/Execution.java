package io.opentelemetry.javaagent.ldfi.r2dbc;

import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.Inside;
import io.opentelemetry.javaagent.ldfi.Timer;
import java.util.Map;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.atomic.AtomicBoolean;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Operators;

/**
 * What executes a statement, and what that comes to when a fault hits it: decided when the first result is asked for,
 * for then the agent has begun the span. No thread is held up.
 */
public final class Execution<T> extends Flux<T> {
  private static final String AGENTS = ".r2dbc.proxy.callback.QueryInvocationSubscriber";
  private static final String[] BEHIND = {"actual", "subscriber", "delegate"};
  private static final int DEEPEST = 16; // of what may stand between a driver and the agent

  private final Object statement;
  private final Publisher<T> executes;

  private Execution(Object statement, Publisher<T> executes) {
    this.statement = statement;
    this.executes = executes;
  }

  /** What executes a statement in place of what does; null where that is one already, as of a batch. */
  public static Flux<?> of(Object statement, Publisher<?> executes) {
    return executes instanceof Execution ? null : new Execution<>(statement, executes);
  }

  @Override
  public void subscribe(CoreSubscriber<? super T> subscriber) {
    Object agents = agentsOfArmed(subscriber);
    if (agents == null) {
      executes.subscribe(subscriber);
    } else {
      subscriber.onSubscribe(new Deciding<>(this, subscriber, agents));
    }
  }

  /** The agent's subscriber, where the request carries a context. */
  private static Object agentsOfArmed(Object subscriber) {
    try {
      return Gate.isArmed() ? agents(subscriber) : null;
    } catch (RuntimeException | LinkageError ours) {
      return null;
    }
  }

  /** The agent's subscriber, that begins the span; null where this is no call of the application's. */
  private static Object agents(Object subscriber) {
    Object each = subscriber;
    for (int i = 0; i < DEEPEST && each != null && !(each instanceof Deciding); i++) {
      if (each.getClass().getName().endsWith(AGENTS)) {
        return each;
      }
      Object before = each;
      each = null;
      for (int j = 0; j < BEHIND.length && each == null; j++) {
        each = Inside.of(before, BEHIND[j]);
      }
    }
    return null;
  }

  /** One execution, which begins when something is asked of it. */
  static final class Deciding<T> extends Operators.DeferredSubscription implements CoreSubscriber<T> {
    private final Execution<T> of;
    private final CoreSubscriber<? super T> asks;
    private final Object agents;
    private final AtomicBoolean begun = new AtomicBoolean();

    Deciding(Execution<T> of, CoreSubscriber<? super T> asks, Object agents) {
      this.of = of;
      this.asks = asks;
      this.agents = agents;
    }

    @Override
    public void request(long more) {
      super.request(more);
      if (begun.compareAndSet(false, true)) {
        begin();
      }
    }

    private void begin() {
      Publisher<T> chosen = of.executes;
      try {
        chosen = chosen();
      } catch (RuntimeException | LinkageError ours) {
        // it is executed as without us
      }
      if (chosen != null) {
        chosen.subscribe(this);
      }
    }

    /** What is executed, in the end; null where that is later. */
    @SuppressWarnings({"try", "unchecked"}) // a scope is held, and not asked; results are of the same driver
    private Publisher<T> chosen() {
      Object stored = Inside.of(agents, "executionInfo", "valueStore", "map");
      Object execution = stored instanceof Map ? ((Map<?, ?>) stored).get("dbExecution") : null;
      Object context = Inside.of(execution, "context");
      if (!(context instanceof Context)) {
        return of.executes;
      }
      PostgreSql database = PostgreSql.of(of.statement);
      try (Scope call = ((Context) context).makeCurrent()) {
        Fault fault =
            Gate.passStatement(possible -> possible.is("delay") || database != null && database.can(possible));
        if (fault == null) {
          return of.executes;
        }
        if (fault.is("delay")) {
          Timer.after(fault.longest, ForkJoinPool.commonPool(), this::goOn);
          return null;
        }
        return (Publisher<T>) database.failing(fault, of.executes);
      }
    }

    private void goOn() {
      if (!isCancelled()) {
        of.executes.subscribe(this);
      }
    }

    @Override
    public reactor.util.context.Context currentContext() {
      return asks.currentContext();
    }

    @Override
    public void onSubscribe(Subscription begun) {
      set(begun);
    }

    @Override
    public void onNext(T result) {
      asks.onNext(result);
    }

    @Override
    public void onError(Throwable failure) {
      asks.onError(failure);
    }

    @Override
    public void onComplete() {
      asks.onComplete();
    }
  }
}
