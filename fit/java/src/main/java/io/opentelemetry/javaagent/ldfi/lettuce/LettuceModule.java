package io.opentelemetry.javaagent.ldfi.lettuce;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.channel.ChannelHandlerContext;
import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;

/**
 * Lettuce, whichever of its three ways a command comes: where it is about to be written. The agent begins its span just
 * before. Threads that wait for a command say so where they begin to, for its timeout is theirs.
 */
public final class LettuceModule extends FitModule {
  public LettuceModule() {
    super("lettuce", new Type(), "LettuceFaults", "Call", "Line", "netty.Failures", "netty.Failures$Native");
  }

  @Override
  protected String library() {
    return "lettuce-5";
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
    private static final int ENCODED = 3; // connection, buffer, command

    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return namedOneOf(
          "io.lettuce.core.protocol.CommandEncoder",
          "io.lettuce.core.FutureSyncInvocationHandler",
          "io.lettuce.core.cluster.ClusterFutureSyncInvocationHandler");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("encode")
              .and(takesArguments(ENCODED))
              .and(takesArgument(ENCODED - 1, named("io.lettuce.core.protocol.RedisCommand"))),
          EncodeAdvice.class.getName());
      transformer.applyAdviceToMethod(named("handleInvocation"), WaitAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class EncodeAdvice {
    private EncodeAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static boolean enter(
        @Advice.Argument(0) ChannelHandlerContext connection, @Advice.Argument(2) RedisCommand<?, ?, ?> command) {
      return LettuceFaults.withholds(connection, command);
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class WaitAdvice {
    private WaitAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, inline = false)
    public static AutoCloseable enter(@Advice.FieldValue("connection") StatefulConnection<?, ?> connection) {
      return LettuceFaults.waiting(connection);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class, inline = false)
    public static void exit(@Advice.Enter AutoCloseable waiting) throws Exception {
      if (waiting != null) {
        waiting.close();
      }
    }
  }
}
