package io.opentelemetry.javaagent.ldfi.reactornetty;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import org.reactivestreams.Publisher;
import reactor.netty.Connection;

/**
 * The client of Reactor Netty, which is WebClient's too: where a request has got its connection and is about to be
 * written. The agent begins its span just before, and leaves it on the channel.
 */
public final class ReactorNettyModule extends FitModule {
  public ReactorNettyModule() {
    super("reactor-netty", new Type(), "ReactorNettyFaults", "Withheld", "netty.Failures", "netty.Failures$Native", "netty.Failures$Lookup");
  }

  @Override
  protected String library() {
    return "reactor-netty-1";
  }

  @Override
  protected String kind() {
    return "http";
  }

  static final class Type implements TypeInstrumentation {
    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return named("reactor.netty.http.client.HttpClientConnect$HttpClientHandler");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("requestWithBody").and(takesArguments(1)), RequestAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class RequestAdvice {
    private RequestAdvice() {}

    @Advice.AssignReturned.ToReturned
    @Advice.OnMethodExit(suppress = Throwable.class, inline = false)
    public static Publisher<Void> exit(
        @Advice.Argument(0) Connection connection, @Advice.FieldValue("websocketClientSpec") Object websocket) {
      return websocket == null ? ReactorNettyFaults.instead(connection) : null; // null leaves what was returned
    }
  }
}
