package io.opentelemetry.javaagent.ldfi.apache4;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import org.apache.http.HttpClientConnection;
import org.apache.http.HttpRequest;
import org.apache.http.protocol.HttpContext;

/**
 * Apache HttpClient 4, where it sends a request over its connection: beneath all that tries again, follows, logs in,
 * or looks at answers, of the minimal client and of the old one as well.
 */
public final class Apache4Module extends FitModule {
  public Apache4Module() {
    super("apache-httpclient-4", new Type(), "Apache4Faults");
  }

  @Override
  protected String kind() {
    return "http";
  }

  static final class Type implements TypeInstrumentation {
    private static final int ARGUMENTS = 3;

    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return named("org.apache.http.protocol.HttpRequestExecutor");
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
        @Advice.Argument(0) HttpRequest request,
        @Advice.Argument(1) HttpClientConnection connection,
        @Advice.Argument(2) HttpContext context) {
      return Apache4Faults.instead(request, connection, context);
    }

    @Advice.AssignReturned.ToReturned(index = 0)
    @Advice.AssignReturned.ToThrown(index = 1)
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Object[] exit(@Advice.Enter Object[] instead) {
      return instead; // null leaves both
    }
  }
}
