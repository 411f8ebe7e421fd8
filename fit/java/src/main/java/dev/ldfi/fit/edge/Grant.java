package dev.ldfi.fit.edge;

import dev.ldfi.fit.Json;
import java.util.Map;

/** What the control plane answers when it is asked for a device. */
final class Grant {
  final boolean granted;

  /** For how long the edge may act, counted from its question. */
  final double seconds;

  /** That of the rules by which it was granted. */
  final String version;

  private Grant(boolean granted, double seconds, String version) {
    this.granted = granted;
    this.seconds = seconds;
    this.version = version;
  }

  static Grant read(String text) {
    Map<String, Object> said = Rules.object(Json.read(text));
    return new Grant(
        Rules.as(Boolean.class, said.get("granted")),
        Math.min(Rules.number(said.get("lease_seconds"), Double.MAX_VALUE), Rules.MAX_LEASE),
        Rules.as(String.class, said.get("version")));
  }
}
