package dev.ldfi.fit.callers;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** An agent and a Java under which programs of the tests run. */
record Cell(String agent, String java) {
  static final String OLDEST = "2.31.1";
  static final String NEWEST = "2.33.1";
  static final String TOO_OLD = "2.28.1";

  private static final String BUILT_WITH = "that builds it";
  private static final String NEWER = "25";
  private static final String WHERE = "LDFI_JAVA_25"; // a folder with bin/java
  private static final int BRIEFLY = 2;

  /** The matrix: the oldest and the newest agent, the Java that the tests are built with and a newer one. */
  static Stream<Cell> all() {
    return Stream.of(
        new Cell(OLDEST, BUILT_WITH), new Cell(NEWEST, BUILT_WITH), new Cell(NEWEST, NEWER), new Cell(OLDEST, NEWER));
  }

  /** An agent, and the Java that the tests are built with. */
  static Cell of(String agent) {
    return new Cell(agent, BUILT_WITH);
  }

  /**
   * The kinds of fault that are tried here, of all. What an agent does of its own accord under a newer Java is tried
   * with the newest; with the oldest, that the points are there.
   */
  List<String> of(List<String> kinds) {
    return agent.equals(OLDEST) && java.equals(NEWER) ? kinds.subList(0, BRIEFLY) : kinds;
  }

  /** The program that is Java; empty where this machine has none of that version. */
  Optional<String> program() {
    String home = java.equals(NEWER) ? System.getenv(WHERE) : System.getProperty("java.home");
    return Optional.ofNullable(home).map(found -> Path.of(found, "bin", "java").toString());
  }

  /** Why there is none. */
  String lacking() {
    return "no Java " + java + ": " + WHERE + " says where it is";
  }
}
