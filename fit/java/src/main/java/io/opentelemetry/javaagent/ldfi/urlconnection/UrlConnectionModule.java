package io.opentelemetry.javaagent.ldfi.urlconnection;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;
import static net.bytebuddy.matcher.ElementMatchers.takesNoArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import java.net.HttpURLConnection;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.utility.JavaModule;

/**
 * {@code HttpURLConnection}, beneath its public methods: these try again what has failed, and tell of the first
 * failure whatever comes of it.
 */
public final class UrlConnectionModule extends FitModule {
  public UrlConnectionModule() {
    super("http-url-connection", new Type(), "UrlConnectionFaults", "UrlConnectionFaults$Body");
  }

  @Override
  protected String kind() {
    return "http";
  }

  /** What an answer is put into is no public part of Java. */
  @Override
  public Map<JavaModule, List<String>> jpmsModulesToOpen() {
    return Collections.singletonMap(
        JavaModule.ofType(Object.class),
        Arrays.asList("java.net", "sun.net.www", "sun.net.www.protocol.http"));
  }

  static final class Type implements TypeInstrumentation {
    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return named("sun.net.www.protocol.http.HttpURLConnection");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("plainConnect0").and(takesNoArguments()), ConnectAdvice.class.getName());
      transformer.applyAdviceToMethod(
          named("getInputStream0").and(takesNoArguments()), AnswerAdvice.class.getName());
      transformer.applyAdviceToMethod(
          named("addRequestProperty").and(takesArguments(String.class, String.class)), AddAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class ConnectAdvice {
    private ConnectAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static Throwable enter(@Advice.This HttpURLConnection connection) {
      return UrlConnectionFaults.connecting(connection);
    }

    @Advice.AssignReturned.ToThrown
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Throwable exit(@Advice.Enter Throwable failed) {
      return failed; // null leaves what was thrown
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class AddAdvice {
    private AddAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static boolean enter(
        @Advice.This HttpURLConnection connection, @Advice.Argument(0) String name, @Advice.Argument(1) String value) {
      return UrlConnectionFaults.joins(connection, name, value);
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class AnswerAdvice {
    private AnswerAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static Object[] enter(@Advice.This HttpURLConnection connection) {
      return UrlConnectionFaults.answering(connection);
    }

    @Advice.AssignReturned.ToReturned(index = 0)
    @Advice.AssignReturned.ToThrown(index = 1)
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Object[] exit(@Advice.Enter Object[] instead) {
      return instead; // null leaves both
    }
  }
}
