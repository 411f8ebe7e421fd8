package io.opentelemetry.javaagent.ldfi.r2dbc;

import static io.opentelemetry.javaagent.extension.matcher.AgentElementMatchers.hasClassesNamed;
import static io.opentelemetry.javaagent.extension.matcher.AgentElementMatchers.implementsInterface;
import static net.bytebuddy.matcher.ElementMatchers.isBridge;
import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.returns;
import static net.bytebuddy.matcher.ElementMatchers.takesNoArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/** R2DBC: whatever executes a statement or a batch of any driver, beneath what the agent puts around drivers. */
public final class R2dbcModule extends FitModule {
  public R2dbcModule() {
    super(
        "r2dbc",
        new Type(),
        "Execution",
        "Execution$Deciding",
        "PostgreSql",
        "Cut",
        "netty.Failures",
        "netty.Failures$Native");
  }

  @Override
  protected String library() {
    return "r2dbc-1";
  }

  @Override
  protected String kind() {
    return "db";
  }

  @Override
  protected String words() {
    return "delay,error,reset,sql";
  }

  static final class Type implements TypeInstrumentation {
    @Override
    public ElementMatcher<ClassLoader> classLoaderOptimization() {
      return hasClassesNamed("io.r2dbc.spi.Statement");
    }

    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return implementsInterface(namedOneOf("io.r2dbc.spi.Statement", "io.r2dbc.spi.Batch"));
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("execute")
              .and(isPublic())
              .and(takesNoArguments())
              .and(not(isBridge()))
              .and(returns(namedOneOf("reactor.core.publisher.Flux", "org.reactivestreams.Publisher"))),
          ExecuteAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class ExecuteAdvice {
    private ExecuteAdvice() {}

    @Advice.AssignReturned.ToReturned
    @Advice.OnMethodExit(suppress = Throwable.class, inline = false)
    public static Flux<?> exit(@Advice.This Object statement, @Advice.Return Publisher<?> executes) {
      return Execution.of(statement, executes);
    }
  }
}
