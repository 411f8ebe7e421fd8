package dev.ldfi.fit.callers;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Runs a program of the tests under the real agent, with the extension as it is shipped. */
final class UnderAgent {
  static final String KEYS = "k1:0123456789abcdef";

  private static final Path TARGET = Path.of("target").toAbsolutePath();

  /** What it wrote: lines, and what the agent said. */
  record Written(List<String> lines, String log) {}

  private UnderAgent() {}

  static Written run(Cell cell, Class<?> program, String argument, Map<String, String> environment) throws Exception {
    return run(cell, TARGET.resolve("ldfi-fit.jar"), program, argument, environment);
  }

  /** Runs it with another jar in the extension's place. */
  static Written run(
      Cell cell, Path extension, Class<?> program, String argument, Map<String, String> environment) throws Exception {
    assertTrue(cell.program().isPresent() || System.getenv("CI") == null, cell.lacking() + ", and CI has to run this");
    assumeTrue(cell.program().isPresent(), cell.lacking());
    Path out = Files.createTempFile("written", ".out");
    Path log = Files.createTempFile("written", ".log");
    ProcessBuilder starting = new ProcessBuilder(words(cell, extension, program, argument));
    Map<String, String> told = starting.environment();
    told.keySet().removeIf(name -> name.startsWith("OTEL_") || name.startsWith("FIT_") || name.startsWith("JAVA_"));
    told.putAll(environment);
    for (String exporter : List.of("TRACES", "METRICS", "LOGS")) {
      told.putIfAbsent("OTEL_" + exporter + "_EXPORTER", "none");
    }
    told.put("OTEL_SERVICE_NAME", "callers");
    Process process = starting.redirectOutput(out.toFile()).redirectError(log.toFile()).start();
    try {
      boolean ended = process.waitFor(5, TimeUnit.MINUTES);
      String said = Files.readString(log);
      if (!ended || process.exitValue() != 0) {
        throw new IOException((ended ? "exit code " + process.exitValue() : "it hangs") + ": " + said);
      }
      return new Written(Files.readAllLines(out), said);
    } finally {
      process.destroyForcibly();
      Files.delete(out);
      Files.delete(log);
    }
  }

  private static List<String> words(Cell cell, Path extension, Class<?> program, String argument) {
    List<String> words = new ArrayList<>();
    words.add(cell.program().orElseThrow());
    words.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")); // they end before more is worth it
    words.add("-Djava.security.properties=" + TARGET.resolve("test-classes/lookups.properties"));
    words.add("-javaagent:" + TARGET.resolve("agents/opentelemetry-javaagent-" + cell.agent() + ".jar"));
    words.add("-Dotel.javaagent.extensions=" + extension + "," + TARGET.resolve("ldfi-fit-tests.jar"));
    words.add("-cp");
    words.add(
        String.join(
            File.pathSeparator,
            TARGET.resolve("classes").toString(),
            TARGET.resolve("test-classes").toString(),
            TARGET.resolve("beside") + "/*"));
    words.add(program.getName());
    words.add(KEYS);
    words.add(argument);
    return words;
  }
}
