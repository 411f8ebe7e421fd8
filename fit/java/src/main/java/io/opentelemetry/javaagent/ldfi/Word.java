package io.opentelemetry.javaagent.ldfi;

import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What an edge tells the sampler: this request has just come in, from nobody of ours. A device may send a traceparent,
 * and then the span at the edge has a parent like any other; only the edge knows that nobody will ever export it.
 */
final class Word {
  private static final ContextKey<Word> KEY = ContextKey.named("ldfi-fit-word");

  private final Attributes says;
  private final AtomicBoolean taken = new AtomicBoolean();

  private Word(Attributes says) {
    this.says = says;
  }

  /** Leaves word in the context of a request: what its span shall tell of it, by feature. */
  static Context leave(Context context, Map<String, String> features, boolean again) {
    AttributesBuilder says = Attributes.builder().put(Marks.EDGE, true);
    if (again) {
      says.put(Marks.AGAIN, true);
    }
    features.forEach((name, value) -> says.put(Marks.FEATURE + name, value));
    return context.with(KEY, new Word(says.build()));
  }

  /** What was left, for the first who asks; nothing for all others. */
  static Attributes takenFrom(Context context) {
    Word word = context.get(KEY);
    return word != null && word.taken.compareAndSet(false, true) ? word.says : Attributes.empty();
  }
}
