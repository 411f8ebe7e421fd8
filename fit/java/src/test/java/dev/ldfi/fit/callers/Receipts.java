package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Runs under the agent: programs ask Kafka for messages while something really happens to its broker, and then while that
 * is well and the same is injected. A line of JSON for each says what was seen and what was recorded. It is told the
 * broker's port, the number of its process, and the kinds.
 */
public final class Receipts {
  static final String LATER = "delay-1000"; // milliseconds, for which a patient caller waits
  static final String IN_CONTROL = "in control";
  static final String WHOSE_MESSAGE = "who works on a message";

  private static final String POINT = "callers>message:receive:kafka/" + Producers.TOPIC;
  private static final int PATIENCE = 500; // milliseconds
  private static final int LONG = 60_000;
  private static final int LATE = 900;

  private final Keys keys;
  private final int port;
  private final String process;
  private final KafkaProducer<String, String> producer;

  private Receipts(Keys keys, int port, String process) {
    this.keys = keys;
    this.port = port;
    this.process = process;
    StringSerializer plain = new StringSerializer();
    this.producer =
        new KafkaProducer<>(Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:" + port), plain, plain);
  }

  public static void main(String[] arguments) throws Exception {
    List<String> words = List.of(arguments[1].split(" "));
    Receipts receipts = new Receipts(Keys.parse(arguments[0]), Integer.parseInt(words.get(0)), words.get(1));
    for (Map.Entry<String, KafkaConsumer<String, String>> each : consumers(receipts.port).entrySet()) {
      KafkaConsumer<String, String> consumer = each.getValue();
      toTheEnd(consumer);
      for (String kind : words.subList(2, words.size())) {
        String really = kind.equals(LATER) ? "late, 1" : receipts.really(kind, each.getKey(), consumer);
        receipts.compare(each.getKey(), kind, consumer, really);
      }
      receipts.inControl(consumer);
      receipts.worksOnIt(consumer);
      consumer.close();
    }
    System.exit(0);
  }

  private static Map<String, KafkaConsumer<String, String>> consumers(int at) {
    KafkaConsumer<String, String> subscribed = consumer(at);
    subscribed.subscribe(List.of(Producers.TOPIC));
    KafkaConsumer<String, String> assigned = consumer(at);
    assigned.assign(List.of(new TopicPartition(Producers.TOPIC, 0)));
    Map<String, KafkaConsumer<String, String>> all = new LinkedHashMap<>();
    all.put("by subscription", subscribed);
    all.put("by assignment", assigned);
    return all;
  }

  private static KafkaConsumer<String, String> consumer(int at) {
    Map<String, Object> configuration = new LinkedHashMap<>();
    configuration.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:" + at);
    configuration.put(ConsumerConfig.GROUP_ID_CONFIG, UUID.randomUUID().toString());
    configuration.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    StringDeserializer plain = new StringDeserializer();
    return new KafkaConsumer<>(configuration, plain, plain);
  }

  /** Has it take all that there is. */
  private static void toTheEnd(KafkaConsumer<String, String> consumer) {
    while (consumer.assignment().isEmpty()) {
      consumer.poll(Duration.ofMillis(PATIENCE));
    }
    TopicPartition only = consumer.assignment().iterator().next();
    while (consumer.position(only) < consumer.endOffsets(List.of(only)).get(only)) {
      consumer.poll(Duration.ofMillis(PATIENCE));
    }
  }

  /** What is seen when it really happens. */
  private String really(String kind, String name, KafkaConsumer<String, String> consumer)
      throws IOException, InterruptedException {
    if (!Told.LASTING.contains(kind)) {
      return asked(consumers(RedisServer.free()).get(name), PATIENCE);
    }
    signal("STOP");
    try {
      return asked(consumer, PATIENCE);
    } finally {
      signal("CONT");
    }
  }

  private void signal(String name) throws IOException, InterruptedException {
    new ProcessBuilder("kill", "-" + name, process).inheritIO().start().waitFor();
  }

  /** How many messages came, or what it failed with. */
  private static String asked(KafkaConsumer<String, String> consumer, int patience) {
    long began = System.nanoTime();
    try {
      int came = consumer.poll(Duration.ofMillis(patience)).count();
      return ((System.nanoTime() - began) / 1_000_000 >= LATE ? "late, " : "") + came;
    } catch (RuntimeException failed) {
      return Seen.failed(failed);
    }
  }

  private void compare(String name, String kind, KafkaConsumer<String, String> consumer, String really)
      throws Exception {
    send();
    boolean later = kind.equals(LATER);
    print(Told.of(keys, name, kind, POINT, really, () -> asked(consumer, later ? LONG : PATIENCE)));
    if (!later && consumer.poll(Duration.ofMillis(LONG)).count() != 1) {
      throw new IllegalStateException("the message is lost");
    }
  }

  /** In the other arm messages come, and it says what would have been. */
  private void inControl(KafkaConsumer<String, String> consumer) throws Exception {
    send();
    String context = Told.context(keys, "error", POINT, "c");
    print(Told.of(context, IN_CONTROL, "error", "1", () -> asked(consumer, LONG)));
  }

  private void send() throws Exception {
    producer.send(new ProducerRecord<>(Producers.TOPIC, "a play")).get();
  }

  /** A message brings the context of who sent it: what is called in working on it fails. */
  private void worksOnIt(KafkaConsumer<String, String> consumer) throws Exception {
    String well = Dependency.at("ok"); // first, else it gets the port at which there is nobody
    String nowhere = Dependency.at("refused");
    CompletableFuture<String> called = new CompletableFuture<>();
    Thread works =
        new Thread(
            () -> {
              for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(LONG))) {
                called.complete(each.value() + ": " + said(well));
              }
            });
    works.start();
    String point = "callers>http:GET:" + well + "/";
    Told told =
        Told.of(
            keys,
            WHOSE_MESSAGE,
            "refused",
            point,
            "a play: " + said(nowhere),
            () -> {
              producer.send(new ProducerRecord<>(Producers.TOPIC, "a play"));
              return called.join();
            });
    works.join();
    print(told);
  }

  private static String said(String host) {
    try {
      HttpRequest asked = HttpRequest.newBuilder(URI.create("http://" + host + "/")).build();
      return "" + HttpClient.newHttpClient().send(asked, HttpResponse.BodyHandlers.discarding()).statusCode();
    } catch (IOException | InterruptedException failed) {
      return Seen.failed(failed);
    }
  }

  private static void print(Told told) {
    System.out.println(new Gson().toJson(told));
  }
}
