package dev.ldfi.fit.edge;

/** What a device is in an experiment. */
enum Arm {
  TREATMENT,
  CONTROL;

  /** As a failure context has it. */
  char letter() {
    return this == TREATMENT ? 't' : 'c';
  }

  /** As the control plane has it. */
  String word() {
    return this == TREATMENT ? "treatment" : "control";
  }
}
