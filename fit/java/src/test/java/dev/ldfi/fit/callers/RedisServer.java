package dev.ldfi.fit.callers;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** A Redis on loopback. */
final class RedisServer implements AutoCloseable {
  private static final long START = 60_000; // milliseconds

  final int port;
  private final Process process;

  private RedisServer(int port, Process process) {
    this.port = port;
    this.process = process;
  }

  /** Where its program is, if it is installed. */
  static Optional<Path> installed() {
    Stream<Path> folders = Arrays.stream(System.getenv("PATH").split(":")).map(Path::of);
    return folders.map(each -> each.resolve("redis-server")).filter(Files::exists).findFirst();
  }

  static RedisServer start(Path folder, String... options) throws IOException, InterruptedException {
    int port = free();
    List<String> words = new ArrayList<>();
    words.addAll(List.of(installed().orElseThrow().toString(), "--port", String.valueOf(port), "--save", ""));
    words.addAll(List.of("--dir", folder.toString(), "--enable-debug-command", "yes"));
    words.addAll(List.of(options));
    Process process = new ProcessBuilder(words).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
    RedisServer started = new RedisServer(port, process);
    Runtime.getRuntime().addShutdownHook(new Thread(started::close));
    started.ready();
    return started;
  }

  /** One with keys that it takes its time to load. */
  static RedisServer loading(Path folder) throws IOException, InterruptedException {
    try (RedisServer before = start(folder)) {
      before.said("DEBUG POPULATE 20000");
      before.said("SAVE");
    }
    return start(folder, "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024");
  }

  /** A port at which nobody listens. */
  static int free() throws IOException {
    try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return free.getLocalPort();
    }
  }

  private void ready() throws IOException, InterruptedException {
    long end = System.currentTimeMillis() + START;
    while (System.currentTimeMillis() < end) {
      try {
        new Socket(InetAddress.getLoopbackAddress(), port).close();
        return;
      } catch (IOException notYet) {
        Thread.sleep(20);
      }
    }
    throw new IOException("Redis did not start");
  }

  /** What it answers to a command. */
  String said(String command) throws IOException {
    try (Socket asked = new Socket(InetAddress.getLoopbackAddress(), port)) {
      asked.getOutputStream().write((command + "\r\nQUIT\r\n").getBytes(StandardCharsets.US_ASCII));
      return new String(asked.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
    }
  }

  /** Waits until it has read a write, which it answers later, for it is paused. */
  void hasRead(String command) throws IOException, InterruptedException {
    while (!said("CLIENT LIST").contains("cmd=" + command)) {
      Thread.sleep(10);
    }
  }

  /** Ends it without a word. */
  @Override
  public void close() {
    process.destroyForcibly().onExit().join();
  }
}
