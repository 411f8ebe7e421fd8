package dev.ldfi.fit.callers;

import io.netty.util.concurrent.FastThreadLocalThread;
import io.opentelemetry.context.Context;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** Programs that send Kafka a message, each in its own way, and say all that they see. */
final class Producers {
  static final String TOPIC = "plays";

  /** Programs of which none sees anything of a fault: they are let through. */
  static final String IN_A_TRANSACTION = "in a transaction";

  static final String ON_AN_EVENT_LOOP = "on an event loop";

  private static final int LATE = 1_900; // milliseconds
  private static final int REQUEST = 1_000; // milliseconds, for which a producer that is closed waits for its broker

  /** A program: what it says of a message to the broker at this port, for which it waits so many milliseconds. */
  interface Program {
    String said(int port, int patience);
  }

  /** One that tells what a producer tells its interceptors. */
  public static final class Told implements ProducerInterceptor<String, String> {
    private static volatile CompletableFuture<String> acknowledged = new CompletableFuture<>();

    @Override
    public void configure(Map<String, ?> configuration) {
      acknowledged = new CompletableFuture<>();
    }

    @Override
    public ProducerRecord<String, String> onSend(ProducerRecord<String, String> message) {
      return message;
    }

    @Override
    public void onAcknowledgement(RecordMetadata where, Exception failure) {
      acknowledged.complete(outcome(where, failure));
    }

    @Override
    public void close() {}
  }

  private Producers() {}

  static Map<String, Program> programs() {
    Map<String, Program> all = new LinkedHashMap<>();
    all.put("by a future", Producers::future);
    all.put("by a callback", Producers::callback);
    all.put("by an interceptor", Producers::interceptor);
    return all;
  }

  static Map<String, Program> letThrough() {
    return Map.of(IN_A_TRANSACTION, Producers::transaction, ON_AN_EVENT_LOOP, Producers::eventLoop);
  }

  private static KafkaProducer<String, String> producer(int port, int patience, Map<String, Object> besides) {
    Map<String, Object> configuration = new HashMap<>(besides);
    configuration.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:" + port);
    configuration.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, patience);
    configuration.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, REQUEST);
    StringSerializer plain = new StringSerializer();
    return new KafkaProducer<>(configuration, plain, plain);
  }

  private static ProducerRecord<String, String> message() {
    return new ProducerRecord<>(TOPIC, "a play");
  }

  private static String future(int port, int patience) {
    try (KafkaProducer<String, String> producer = producer(port, patience, Map.of())) {
      long began = System.nanoTime();
      Future<RecordMetadata> sent = producer.send(message());
      String when = late(began) + (sent.isDone() ? "at once " : "later ");
      return when + got(sent);
    }
  }

  private static String late(long began) {
    return (System.nanoTime() - began) / 1_000_000 >= LATE ? "late, " : "";
  }

  private static String got(Future<RecordMetadata> sent) {
    try {
      return outcome(sent.get(), null);
    } catch (ExecutionException failed) {
      return Seen.failed(failed);
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  private static String outcome(RecordMetadata where, Exception failure) {
    String place = where == null ? "nowhere" : where.topic() + " " + where.partition();
    return failure == null ? "sent to " + place : place + ": " + Seen.failed(failure);
  }

  private static String callback(int port, int patience) {
    try (KafkaProducer<String, String> producer = producer(port, patience, Map.of())) {
      CompletableFuture<String> told = new CompletableFuture<>();
      String caller = Thread.currentThread().getName();
      producer.send(
          message(),
          (where, failure) -> {
            boolean own = Thread.currentThread().getName().equals(caller);
            told.complete(outcome(where, failure) + (own ? "; by the caller's thread" : ""));
          });
      return told.join();
    }
  }

  private static String interceptor(int port, int patience) {
    Map<String, Object> told = Map.of(ProducerConfig.INTERCEPTOR_CLASSES_CONFIG, Told.class.getName());
    try (KafkaProducer<String, String> producer = producer(port, patience, told)) {
      producer.send(message());
      producer.flush();
      return Told.acknowledged.join();
    }
  }

  private static String transaction(int port, int patience) {
    Map<String, Object> named = Map.of(ProducerConfig.TRANSACTIONAL_ID_CONFIG, "plays");
    try (KafkaProducer<String, String> producer = producer(port, patience, named)) {
      producer.initTransactions();
      producer.beginTransaction();
      String said = got(producer.send(message()));
      producer.commitTransaction();
      return said;
    }
  }

  private static String eventLoop(int port, int patience) {
    CompletableFuture<String> said = new CompletableFuture<>();
    try (KafkaProducer<String, String> producer = producer(port, patience, Map.of())) {
      producer.partitionsFor(TOPIC);
      Runnable sends = () -> said.complete(got(producer.send(message())));
      new FastThreadLocalThread(Context.current().wrap(sends)).start();
      return said.join();
    }
  }
}
