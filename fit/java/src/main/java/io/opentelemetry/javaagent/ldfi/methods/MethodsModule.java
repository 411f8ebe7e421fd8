package io.opentelemetry.javaagent.ldfi.methods;

import static net.bytebuddy.matcher.ElementMatchers.declaresMethod;
import static net.bytebuddy.matcher.ElementMatchers.isAbstract;
import static net.bytebuddy.matcher.ElementMatchers.isAnnotatedWith;
import static net.bytebuddy.matcher.ElementMatchers.isMethod;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.nameStartsWith;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.returns;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.extension.matcher.AgentElementMatchers;
import io.opentelemetry.javaagent.ldfi.FitModule;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;

/**
 * Methods that somebody has named, in {@code -Dldfi.methods=com.shop.Prices[price,total];…} or by the annotation
 * FaultPoint. What they return later, as a future or a stream, is none of ours: there they are let alone.
 */
public final class MethodsModule extends FitModule {
  public MethodsModule() {
    super("methods", new Type(), "MethodFaults", "InjectedFault");
  }

  @Override
  protected String kind() {
    return "method";
  }

  @Override
  protected String words() {
    return "delay,error,exception";
  }

  static final class Type implements TypeInstrumentation {
    private static final String ANNOTATION = "dev.ldfi.fit.FaultPoint";

    private static final ElementMatcher.Junction<MethodDescription> LATER =
        returns(
            nameStartsWith("java.util.concurrent.")
                .or(nameStartsWith("reactor."))
                .or(nameStartsWith("org.reactivestreams."))
                .or(nameStartsWith("io.reactivex."))
                .or(nameStartsWith("kotlinx.coroutines.")));

    private final Map<String, String[]> named = NamedMethods.configured();

    private ElementMatcher.Junction<MethodDescription> annotated() {
      return isMethod().and(not(isAbstract())).and(isAnnotatedWith(named(ANNOTATION))).and(not(LATER));
    }

    @Override
    public ElementMatcher<ClassLoader> classLoaderOptimization() {
      return named.isEmpty() ? AgentElementMatchers.hasClassesNamed(ANNOTATION) : ElementMatchers.any();
    }

    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      ElementMatcher.Junction<TypeDescription> matched = declaresMethod(annotated());
      return named.isEmpty() ? matched : matched.or(namedOneOf(named.keySet().toArray(new String[0])));
    }

    @Override
    public void transform(TypeTransformer transformer) {
      ElementMatcher.Junction<MethodDescription> matched = annotated();
      for (Map.Entry<String, String[]> each : named.entrySet()) {
        ElementMatcher.Junction<MethodDescription> of =
            ElementMatchers.isDeclaredBy(ElementMatchers.named(each.getKey()));
        matched = matched.or(of.and(isMethod()).and(not(isAbstract())).and(namedOneOf(each.getValue())).and(not(LATER)));
      }
      transformer.applyAdviceToMethod(matched, CallAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class CallAdvice {
    private CallAdvice() {}

    @Advice.OnMethodEnter(
        suppress = Throwable.class,
        skipOn = Advice.OnNonDefaultValue.class,
        skipOnIndex = 0,
        inline = false)
    public static Object[] enter(
        @Advice.Origin Class<?> type, @Advice.Origin("#m") String name, @Advice.Origin("#d") String descriptor) {
      return MethodFaults.enter(type, name, descriptor);
    }

    @Advice.AssignReturned.ToThrown(index = 0)
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Object[] exit(@Advice.Enter Object[] entered, @Advice.Thrown Throwable thrown) {
      MethodFaults.exit(entered, thrown);
      return entered; // null leaves what was thrown
    }
  }
}
