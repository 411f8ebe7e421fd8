package io.opentelemetry.javaagent.ldfi.kafka;

import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import java.time.Duration;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerConfig;

/**
 * Kafka's producer and consumer. A message is late where its sending begins, and fails where the producer asks its
 * brokers for the topic: there it fails in reality where no broker is left, and callbacks, interceptors and metrics are
 * told by the producer itself. Of a consumer it is each time that it is asked for messages.
 */
public final class KafkaModule extends FitModule {
  public KafkaModule() {
    super("kafka", new Type(), "KafkaFaults", "ConsumerFaults");
  }

  @Override
  protected String library() {
    return "kafka-clients-0";
  }

  @Override
  protected String kind() {
    return "message";
  }

  @Override
  protected String words() {
    return "delay,error,refused,timeout";
  }

  static final class Type implements TypeInstrumentation {
    private static final int ASKED = 4; // topic, partition, now, how long to wait

    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return namedOneOf(
          "org.apache.kafka.clients.producer.KafkaProducer", "org.apache.kafka.clients.consumer.KafkaConsumer");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("doSend")
              .and(takesArguments(2))
              .and(takesArgument(0, named("org.apache.kafka.clients.producer.ProducerRecord"))),
          SendAdvice.class.getName());
      transformer.applyAdviceToMethod(
          named("waitOnMetadata")
              .and(takesArguments(ASKED))
              .and(takesArgument(0, String.class))
              .and(takesArgument(ASKED - 1, long.class)),
          TopicAdvice.class.getName());
      transformer.applyAdviceToMethod(
          named("poll").and(isPublic()).and(takesArguments(1)).and(takesArgument(0, Duration.class)),
          PollAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class SendAdvice {
    private SendAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, inline = false)
    public static void enter(
        @Advice.FieldValue("maxBlockTimeMs") long patience,
        @Advice.FieldValue("producerConfig") ProducerConfig configuration) {
      KafkaFaults.before(patience, configuration);
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class TopicAdvice {
    private TopicAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static Throwable enter(
        @Advice.Argument(0) String topic,
        @Advice.Argument(3) long patience,
        @Advice.FieldValue("producerConfig") ProducerConfig configuration) {
      return KafkaFaults.instead(topic, patience, configuration);
    }

    @Advice.AssignReturned.ToThrown
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Throwable exit(@Advice.Enter Throwable failed) {
      return failed; // null leaves what was thrown
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class PollAdvice {
    private PollAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static ConsumerRecords<?, ?> enter(
        @Advice.This KafkaConsumer<?, ?> consumer, @Advice.Argument(0) Duration timeout) {
      return ConsumerFaults.instead(consumer, timeout);
    }

    @Advice.AssignReturned.ToReturned
    @Advice.OnMethodExit(suppress = Throwable.class, inline = false)
    public static ConsumerRecords<?, ?> exit(@Advice.Enter ConsumerRecords<?, ?> instead) {
      return instead; // null leaves what was returned
    }
  }
}
