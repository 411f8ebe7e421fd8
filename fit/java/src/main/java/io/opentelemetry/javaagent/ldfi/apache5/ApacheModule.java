package io.opentelemetry.javaagent.ldfi.apache5;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import org.apache.hc.client5.http.classic.ExecChain;
import org.apache.hc.core5.http.ClassicHttpRequest;

/**
 * Apache HttpClient 5, where it opens a connection to send a request: beneath all that tries again, follows, or
 * looks at answers.
 */
public final class ApacheModule extends FitModule {
  public ApacheModule() {
    super("apache-httpclient-5", new Type(), "ApacheFaults");
  }

  @Override
  protected String kind() {
    return "http";
  }

  static final class Type implements TypeInstrumentation {
    private static final int ARGUMENTS = 3;

    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return named("org.apache.hc.client5.http.impl.classic.ConnectExec");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("execute").and(takesArguments(ARGUMENTS)), ExecuteAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class ExecuteAdvice {
    private ExecuteAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static Object[] enter(
        @Advice.Argument(0) ClassicHttpRequest request, @Advice.Argument(1) ExecChain.Scope scope) {
      return ApacheFaults.instead(request, scope);
    }

    @Advice.AssignReturned.ToReturned(index = 0)
    @Advice.AssignReturned.ToThrown(index = 1)
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Object[] exit(@Advice.Enter Object[] instead) {
      return instead; // null leaves both
    }
  }
}
