package io.opentelemetry.javaagent.ldfi.jdbc;

import static io.opentelemetry.javaagent.extension.matcher.AgentElementMatchers.implementsInterface;
import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.nameStartsWith;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesNoArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import java.sql.Statement;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;

/** JDBC: whatever executes a statement, of any driver and of what is wrapped around it. */
public final class JdbcModule extends FitModule {
  public JdbcModule() {
    super("jdbc", new Type(), "JdbcFaults", "PostgreSql", "Wire", "Wire$Dead", "Wire$Silence");
  }

  @Override
  protected String kind() {
    return "db";
  }

  @Override
  protected String protocol() {
    return "statement";
  }

  static final class Type implements TypeInstrumentation {
    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return implementsInterface(named("java.sql.Statement"));
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          nameStartsWith("execute")
              .and(isPublic())
              .and(takesNoArguments().or(takesArgument(0, String.class))),
          ExecuteAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class ExecuteAdvice {
    private ExecuteAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static Throwable enter(@Advice.This Statement statement, @Advice.Origin("#m") String method) {
      return JdbcFaults.instead(statement, method);
    }

    @Advice.AssignReturned.ToThrown
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Throwable exit(@Advice.Enter Throwable failed) {
      return failed; // null leaves what was thrown
    }
  }
}
