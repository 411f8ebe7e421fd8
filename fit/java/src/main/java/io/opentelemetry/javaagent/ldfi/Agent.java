package io.opentelemetry.javaagent.ldfi;

/** The agent that we run in. */
final class Agent {
  private static final int MAJOR = 2;
  private static final int MINOR = 31; // before it, advice that is isolated from its application does not run

  private Agent() {}

  /** Its version; empty where it does not say, as only agents before 2 do not. */
  static String version() {
    try {
      Class<?> said = Class.forName("io.opentelemetry.javaagent.tooling.AgentVersion");
      return String.valueOf(said.getField("VERSION").get(null));
    } catch (ReflectiveOperationException | LinkageError unknown) {
      return "";
    }
  }

  /** Whether points can be put into libraries under an agent of this version. */
  static boolean isSupported(String version) {
    String[] parts = version.split("[.-]");
    try {
      int major = Integer.parseInt(parts[0]);
      return major > MAJOR || major == MAJOR && Integer.parseInt(parts[1]) >= MINOR;
    } catch (NumberFormatException | ArrayIndexOutOfBoundsException unknown) {
      return false;
    }
  }
}
