package dev.ldfi.fit.callers;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** A PostgreSQL server in a folder of its own, for whoever is on the machine. */
final class PostgreSqlServer {
  private static final Path DEBIAN = Path.of("/usr/lib/postgresql");
  private static final long START = 60_000; // milliseconds

  final int port;
  private final Path folder;
  private final Process process;

  private PostgreSqlServer(int port, Path folder, Process process) {
    this.port = port;
    this.folder = folder;
    this.process = process;
  }

  /** Where its programs are, if they are installed. */
  static Optional<Path> installed() {
    List<Path> folders = new ArrayList<>();
    for (String each : System.getenv("PATH").split(":")) {
      folders.add(Path.of(each));
    }
    if (Files.isDirectory(DEBIAN)) {
      try (Stream<Path> versions = Files.list(DEBIAN)) {
        versions.sorted(Comparator.reverseOrder()).forEach(each -> folders.add(each.resolve("bin")));
      } catch (IOException unreadable) {
        throw new IllegalStateException(unreadable);
      }
    }
    return folders.stream().filter(each -> Files.exists(each.resolve("initdb"))).findFirst();
  }

  static PostgreSqlServer start() throws IOException, InterruptedException {
    Path programs = installed().orElseThrow();
    Path folder = Files.createTempDirectory("ldfi-pg-");
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
    Path data = folder.resolve("data");
    Process made =
        run(folder, programs.resolve("initdb"), "--pgdata", data, "--username", "ldfi", "--auth", "trust", "--locale", "C", "--no-sync");
    if (made.waitFor() != 0) {
      throw new IOException("initdb failed: " + Files.readString(folder.resolve("log")));
    }
    int port;
    try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = free.getLocalPort();
    }
    Process process =
        run(folder, programs.resolve("postgres"), "-D", data, "-k", folder, "-p", port, "-c", "fsync=off", "-c", "listen_addresses=127.0.0.1");
    PostgreSqlServer started = new PostgreSqlServer(port, folder, process);
    Runtime.getRuntime().addShutdownHook(new Thread(started::kill));
    started.ready();
    return started;
  }

  /** Starts a program, as somebody else than root, as whom it refuses to run. */
  private static Process run(Path folder, Object... words) throws IOException {
    List<String> all = new ArrayList<>();
    if (System.getProperty("user.name").equals("root")) {
      all.addAll(List.of("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"));
    }
    for (Object each : words) {
      all.add(each.toString());
    }
    ProcessBuilder starting = new ProcessBuilder(all).directory(folder.toFile()).redirectErrorStream(true);
    return starting.redirectOutput(ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile())).start();
  }

  private void ready() throws IOException, InterruptedException {
    long end = System.currentTimeMillis() + START;
    while (System.currentTimeMillis() < end) {
      try (Socket asked = new Socket(InetAddress.getLoopbackAddress(), port)) {
        if (asked.isConnected() && Files.readString(folder.resolve("log")).contains("ready to accept connections")) {
          return;
        }
      } catch (IOException notYet) {
        // it starts
      }
      Thread.sleep(50);
    }
    throw new IOException("PostgreSQL did not start: " + Files.readString(folder.resolve("log")));
  }

  /** Ends it and all its children without a word. */
  void kill() {
    process.descendants().forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly().onExit().join();
    try (Stream<Path> files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(each -> each.toFile().delete());
    } catch (IOException | UncheckedIOException gone) {
      // by whoever killed it before
    }
  }
}
