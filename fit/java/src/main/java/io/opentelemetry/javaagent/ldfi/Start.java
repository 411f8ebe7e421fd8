package io.opentelemetry.javaagent.ldfi;

import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Where whatever the agent starts of us finds the gate. A gate that cannot be loaded is none: the agent would not start
 * without it, and the application would have no traces for a fault of ours.
 */
final class Start {
  private static final Logger LOGGER = Logger.getLogger(Start.class.getName());
  private static final Gate GATE = installed();

  private Start() {}

  /** The gate of this process; null where it has no keys, none that can be read, or cannot have one. */
  static Gate gate() {
    return GATE;
  }

  private static Gate installed() {
    try {
      return Gate.installed();
    } catch (LinkageError broken) {
      LOGGER.log(Level.SEVERE, "ldfi-fit is off: its gate cannot be loaded", broken);
      return null;
    }
  }
}
