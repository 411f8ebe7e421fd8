package io.opentelemetry.javaagent.ldfi.jdkhttp;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;

/** {@code java.net.http}: where send and sendAsync come together, beneath what they make of exceptions. */
public final class JdkHttpModule extends FitModule {
  public JdkHttpModule() {
    super("java-http-client", new Type(), "JdkHttpFaults", "Answer", "Answer$Cut");
  }

  @Override
  protected String kind() {
    return "http";
  }

  static final class Type implements TypeInstrumentation {
    private static final int ARGUMENTS = 4; // the executor is the last

    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return named("jdk.internal.net.http.HttpClientImpl");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("sendAsync").and(takesArguments(ARGUMENTS)), SendAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class SendAdvice {
    private SendAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static CompletableFuture<?> enter(
        @Advice.This java.net.http.HttpClient client,
        @Advice.Argument(0) HttpRequest request,
        @Advice.Argument(1) HttpResponse.BodyHandler<?> handler,
        @Advice.Argument(2) HttpResponse.PushPromiseHandler<?> pushes) {
      return JdkHttpFaults.instead(client, request, handler, pushes);
    }

    @Advice.AssignReturned.ToReturned
    @Advice.OnMethodExit(suppress = Throwable.class, inline = false)
    public static CompletableFuture<?> exit(@Advice.Enter CompletableFuture<?> instead) {
      return instead; // null leaves what was returned
    }
  }
}
