package io.opentelemetry.javaagent.ldfi;

import static io.opentelemetry.api.common.AttributeKey.booleanKey;
import static io.opentelemetry.api.common.AttributeKey.longKey;
import static io.opentelemetry.api.common.AttributeKey.stringKey;

import io.opentelemetry.api.common.AttributeKey;

/** What is written on spans, as fit/protocol/attributes.py has it. */
final class Marks {
  static final AttributeKey<String> POINT = stringKey("fit.point");
  static final AttributeKey<String> FIRED = stringKey("fit.fired");
  static final AttributeKey<String> WOULD_FIRE = stringKey("fit.would_fire");
  static final AttributeKey<Boolean> LET_THROUGH = booleanKey("fit.let_through");
  static final AttributeKey<Boolean> OUTLIVED = booleanKey("fit.outlived");
  static final AttributeKey<Boolean> EXPIRED = booleanKey("fit.expired");
  static final AttributeKey<String> EXPERIMENT = stringKey("fit.experiment");
  static final AttributeKey<String> ARM = stringKey("fit.arm");
  static final AttributeKey<Boolean> EDGE = booleanKey("fit.edge");
  static final AttributeKey<Boolean> AGAIN = booleanKey("fit.again");
  static final AttributeKey<Long> CALLS = longKey("fit.calls");
  static final String FEATURE = "fit.feature."; // what its name begins with
  static final String EVENT = "fit.fault";

  private Marks() {}
}
