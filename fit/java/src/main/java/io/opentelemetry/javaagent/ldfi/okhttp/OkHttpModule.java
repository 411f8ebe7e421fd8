package io.opentelemetry.javaagent.ldfi.okhttp;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import okhttp3.Interceptor;

/**
 * OkHttp: its innermost interceptor, which asks the server. That is within the agent's own, of which each attempt
 * has a span, and beneath all that tries again.
 */
public final class OkHttpModule extends FitModule {
  public OkHttpModule() {
    super("okhttp", new Type(), "OkHttpFaults", "Attempt", "Body", "Body$Cut");
  }

  @Override
  protected String library() {
    return "okhttp-3";
  }

  @Override
  protected String kind() {
    return "http";
  }

  static final class Type implements TypeInstrumentation {
    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return named("okhttp3.internal.http.CallServerInterceptor");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("intercept").and(takesArguments(1)), InterceptAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class InterceptAdvice {
    private InterceptAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static Object[] enter(@Advice.Argument(0) Interceptor.Chain chain) {
      return OkHttpFaults.instead(chain);
    }

    @Advice.AssignReturned.ToReturned(index = 0)
    @Advice.AssignReturned.ToThrown(index = 1)
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Object[] exit(@Advice.Enter Object[] instead) {
      return instead; // null leaves both
    }
  }
}
