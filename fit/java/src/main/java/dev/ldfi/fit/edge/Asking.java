package dev.ldfi.fit.edge;

import java.util.Objects;

/** A device that falls in an arm of an experiment: whom an ask is for. */
final class Asking {
  final String experiment;
  final Arm arm;
  final long mark;

  Asking(String experiment, Arm arm, long mark) {
    this.experiment = experiment;
    this.arm = arm;
    this.mark = mark;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Asking && of((Asking) other);
  }

  private boolean of(Asking other) {
    return mark == other.mark && arm == other.arm && experiment.equals(other.experiment);
  }

  @Override
  public int hashCode() {
    return Objects.hash(experiment, arm, mark);
  }
}
