package io.opentelemetry.javaagent.ldfi.kafka;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * What a message comes to when a fault hits it: what it does in a producer that finds no broker. It holds up its thread,
 * as a producer does that waits for one, but none that is others' too.
 */
public final class KafkaFaults {
  /** Threads that serve many requests: a message of theirs is neither late nor waits for anything. */
  private static final Set<String> SHARED =
      new HashSet<>(
          Arrays.asList(
              "io.netty.util.concurrent.FastThreadLocalThread",
              "reactor.core.scheduler.NonBlocking",
              "org.apache.kafka.common.utils.KafkaThread"));

  private KafkaFaults() {}

  /** Lets a message wait that is sent afterwards. */
  public static void before(long patience, ProducerConfig configuration) {
    if (!Gate.isArmed() || isTransactional(configuration) || isShared(Thread.currentThread())) {
      return;
    }
    Fault fault = Gate.passMessage(possible -> possible.is("delay") && !outlasts(possible, patience));
    if (fault != null) {
      hang(fault.longest);
    }
  }

  /** What asking for the topic fails with; null asks. */
  public static Throwable instead(String topic, long patience, ProducerConfig configuration) {
    if (!Gate.isArmed() || isTransactional(configuration)) {
      return null;
    }
    Fault fault = Gate.passMessage(possible -> can(possible, patience));
    if (fault == null) {
      return null;
    }
    if (isLasting(fault) && !hang(patience)) {
      return new InterruptedException();
    }
    return new TimeoutException("Topic " + topic + " not present in metadata after " + patience + " ms.");
  }

  /** Milliseconds that the producer waits (max.block.ms); with 0 it does not, which is no waiting for ever. */
  private static boolean outlasts(Fault fault, long patience) {
    return patience <= fault.longest;
  }

  private static boolean can(Fault fault, long patience) {
    return isLasting(fault)
        ? outlasts(fault, patience) && !isShared(Thread.currentThread())
        : fault.is("error") || fault.is("refused");
  }

  private static boolean isLasting(Fault fault) {
    return fault.is("timeout") || fault.is("delay");
  }

  /** Whether it is in transactions, where one message that fails fails those of others. */
  private static boolean isTransactional(ProducerConfig configuration) {
    return configuration.getString(ProducerConfig.TRANSACTIONAL_ID_CONFIG) != null;
  }

  static boolean isShared(Thread thread) {
    for (Class<?> each = thread.getClass(); each != null; each = each.getSuperclass()) {
      if (SHARED.contains(each.getName())
          || Arrays.stream(each.getInterfaces()).anyMatch(found -> SHARED.contains(found.getName()))) {
        return true;
      }
    }
    return false;
  }

  /** Whether the whole time has passed. */
  static boolean hang(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
      return true;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt(); // whoever waits next is told
      return false;
    }
  }
}
