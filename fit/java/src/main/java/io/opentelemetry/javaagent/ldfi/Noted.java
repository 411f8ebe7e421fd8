package io.opentelemetry.javaagent.ldfi;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;

/** A library's points, of which it is noted that they are reached when the library is loaded. */
final class Noted implements TypeInstrumentation {
  private final TypeInstrumentation type;
  private final String kind;
  private final String words;
  private final String library;

  Noted(TypeInstrumentation type, String kind, String words, String library) {
    this.type = type;
    this.kind = kind;
    this.words = words;
    this.library = library;
  }

  @Override
  public ElementMatcher<ClassLoader> classLoaderOptimization() {
    return type.classLoaderOptimization();
  }

  @Override
  public ElementMatcher<TypeDescription> typeMatcher() {
    ElementMatcher<TypeDescription> matcher = type.typeMatcher();
    return loaded -> {
      boolean found = matcher.matches(loaded);
      if (found && !loaded.isAbstract()) { // interfaces are
        Reach.noted(kind, words, library);
      }
      return found;
    };
  }

  @Override
  public void transform(TypeTransformer transformer) {
    type.transform(transformer);
  }
}
