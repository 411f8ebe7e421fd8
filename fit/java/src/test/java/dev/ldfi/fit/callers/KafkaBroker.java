package dev.ldfi.fit.callers;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Uuid;

/** A Kafka of one node on loopback, in a folder of its own. */
final class KafkaBroker implements AutoCloseable {
  private static final String WHERE = "LDFI_KAFKA"; // a folder with its jars
  private static final String CONFIGURED =
      """
      process.roles=broker,controller
      node.id=1
      controller.quorum.voters=1@127.0.0.1:%1$d
      listeners=PLAINTEXT://127.0.0.1:%2$d,CONTROLLER://127.0.0.1:%1$d
      advertised.listeners=PLAINTEXT://127.0.0.1:%2$d
      controller.listener.names=CONTROLLER
      listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
      log.dirs=%3$s
      offsets.topic.replication.factor=1
      transaction.state.log.num.partitions=1
      transaction.state.log.replication.factor=1
      transaction.state.log.min.isr=1
      """;
  private static final int START = 180_000; // milliseconds

  final int port;
  private final Path folder;
  private Process process;

  private KafkaBroker(int port, Path folder) {
    this.port = port;
    this.folder = folder;
  }

  /** Where its jars are, if they are. */
  static Optional<Path> installed() {
    return Optional.ofNullable(System.getenv(WHERE)).map(Path::of).filter(Files::isDirectory);
  }

  /** Why there is none. */
  static String lacking() {
    return "no Kafka: " + WHERE + " says where its jars are";
  }

  /** Starts one that has this topic. */
  static KafkaBroker start(String topic) throws Exception {
    Path folder = Files.createTempDirectory("ldfi-kafka-");
    KafkaBroker broker = new KafkaBroker(RedisServer.free(), folder);
    Runtime.getRuntime().addShutdownHook(new Thread(broker::close));
    Path file = folder.resolve("server.properties");
    Files.writeString(file, CONFIGURED.formatted(RedisServer.free(), broker.port, folder.resolve("logs")));
    String id = Uuid.randomUuid().toString();
    if (broker.run("kafka.tools.StorageTool", "format", "-t", id, "-c", file.toString()).waitFor() != 0) {
      throw new IOException("its log cannot be made: " + broker.said());
    }
    broker.process = broker.run("kafka.Kafka", file.toString());
    String address = "127.0.0.1:" + broker.port;
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", address, "default.api.timeout.ms", START))) {
      admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
    }
    return broker;
  }

  private Process run(String... words) throws IOException {
    List<String> all = new ArrayList<>();
    all.addAll(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1"));
    all.addAll(List.of("-XX:+UseSerialGC", "-Xmx512m", "-cp", installed().orElseThrow() + "/*"));
    all.addAll(List.of(words));
    ProcessBuilder starting = new ProcessBuilder(all).directory(folder.toFile()).redirectErrorStream(true);
    return starting.redirectOutput(ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile())).start();
  }

  private String said() throws IOException {
    return Files.readString(folder.resolve("log"));
  }

  /** The number of its process. */
  long pid() {
    return process.pid();
  }

  /** Ends it without a word. */
  @Override
  public void close() {
    if (process != null) {
      process.destroyForcibly().onExit().join();
    }
    try (Stream<Path> files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(each -> each.toFile().delete());
    } catch (IOException | UncheckedIOException gone) {
      // by whoever closed it before
    }
  }
}
