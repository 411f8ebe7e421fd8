package io.opentelemetry.javaagent.ldfi.kafka;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.OwnCall;
import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * What asking for messages comes to when a fault hits it. A consumer that has lost its brokers says nothing of that:
 * when the time is over for which it was to wait, there are no messages.
 */
public final class ConsumerFaults {
  private static final int LONGEST = 60_000; // milliseconds, beyond which nobody waits for an error

  private ConsumerFaults() {}

  /** What comes of asking; null asks. */
  public static ConsumerRecords<?, ?> instead(KafkaConsumer<?, ?> consumer, Duration timeout) {
    if (!Gate.isArmed() || KafkaFaults.isShared(Thread.currentThread())) {
      return null;
    }
    long patience = timeout.toMillis();
    Predicate<Fault> can = possible -> can(possible, patience);
    OwnCall call = OwnCall.receiving(String.join(",", topics(consumer)), can);
    if (call == null) {
      return null;
    }
    try {
      Fault fault = call.pass(can);
      if (fault == null) {
        return null;
      }
      boolean isLate = fault.is("delay") && fault.longest < patience;
      boolean whole = KafkaFaults.hang(isLate ? fault.longest : patience);
      return isLate || !whole ? null : ConsumerRecords.empty(); // who is interrupted is told so by the consumer
    } finally {
      call.end(null);
    }
  }

  private static Set<String> topics(KafkaConsumer<?, ?> consumer) {
    Set<String> topics = new TreeSet<>(consumer.subscription());
    if (topics.isEmpty()) {
      for (TopicPartition each : consumer.assignment()) {
        topics.add(each.topic());
      }
    }
    return topics;
  }

  private static boolean can(Fault fault, long patience) {
    switch (fault.kind) {
      case "delay":
        return true;
      case "timeout":
        return patience <= fault.longest;
      case "error":
      case "refused":
        return patience <= LONGEST;
      default:
        return false;
    }
  }
}
