package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.Kind;
import io.opentelemetry.javaagent.extension.instrumentation.InstrumentationModule;
import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.internal.ExperimentalInstrumentationModule;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The points in one library. They are inside of the agent's own instrumentation of it, so that the call's span is
 * there, and live in class loaders of their own, from which they see the library and the gate. Older agents
 * cannot do that: there, and where there are no keys, nothing is touched.
 */
public abstract class FitModule extends InstrumentationModule implements ExperimentalInstrumentationModule {
  /** The kinds that clients carry out each in its own way, besides answers and connections that cannot be made. */
  private static final Set<String> BY_HAND =
      new HashSet<>(Arrays.asList("delay", "error", "grpc", "redis", "reset", "sql", "status", "timeout"));

  private final String library;
  private final TypeInstrumentation type;
  private final List<String> helpers;

  /**
   * A library's points, and the classes that its advice needs beside itself, by their names in the module's package, or
   * in one beside it ("netty.Failures"): what is loaded here does not see the library.
   */
  protected FitModule(String library, TypeInstrumentation type, String... helpers) {
    super("ldfi-fit", "ldfi-fit-" + library);
    this.library = library;
    this.type = type;
    String within = getClass().getName().replaceAll("[^.]+$", "");
    String beside = FitModule.class.getName().replaceAll("[^.]+$", "");
    this.helpers =
        Arrays.stream(helpers)
            .map(name -> (name.contains(".") ? beside : within) + name)
            .collect(Collectors.toList());
  }

  @Override
  public List<TypeInstrumentation> typeInstrumentations() {
    boolean on = Start.gate() != null && Agent.isSupported(Agent.version());
    if (!on) {
      return Collections.emptyList();
    }
    String kind = kind();
    return Collections.singletonList(kind.isEmpty() ? type : new Noted(type, kind, words(), library()));
  }

  /** The kind of point that its calls are, as names have it; empty for what makes no calls. */
  protected String kind() {
    return "";
  }

  /** By what its calls are made, as {@code kinds.json} has it. */
  protected String protocol() {
    return kind();
  }

  /** The words of the kinds of fault that its calls can have, in their order and between commas. */
  protected String words() {
    return Kind.words(protocol()).stream().filter(FitModule::isKnown).sorted().collect(Collectors.joining(","));
  }

  private static boolean isKnown(String word) {
    Kind kind = Kind.of(word);
    return BY_HAND.contains(word) || !kind.connecting.isEmpty() || kind.answer() != null;
  }

  /** The library as the agent names the scope of its spans, with nothing of its version but the first number. */
  protected String library() {
    return library;
  }

  @Override
  public int order() {
    return 1; // within the agent's own, which have 0
  }

  @Override
  public List<String> getAdditionalHelperClassNames() {
    return helpers;
  }

  @Override
  public boolean isHelperClass(String name) {
    return helpers.contains(name);
  }

  @Override
  public HelperClassStrategy helperClassStrategy() {
    return HelperClassStrategy.ISOLATED;
  }
}
