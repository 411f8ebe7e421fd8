package io.opentelemetry.javaagent.ldfi.jedis;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;

/** Jedis, from version 4 on: where every command is sent, beneath pools and what tries again. */
public final class JedisModule extends FitModule {
  public JedisModule() {
    super("jedis", new Type(), "JedisFaults");
  }

  @Override
  protected String library() {
    return "jedis-4";
  }

  @Override
  protected String kind() {
    return "db";
  }

  @Override
  protected String protocol() {
    return "command";
  }

  static final class Type implements TypeInstrumentation {
    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return named("redis.clients.jedis.Connection");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("sendCommand")
              .and(takesArguments(1))
              .and(takesArgument(0, named("redis.clients.jedis.CommandArguments"))),
          SendAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class SendAdvice {
    private SendAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static Throwable enter(
        @Advice.This Connection connection, @Advice.Argument(0) CommandArguments command) {
      return JedisFaults.instead(connection, command);
    }

    @Advice.AssignReturned.ToThrown
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static Throwable exit(@Advice.Enter Throwable failed) {
      return failed; // null leaves what was thrown
    }
  }
}
