package io.opentelemetry.javaagent.ldfi.grpc;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.grpc.CallOptions;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.internal.ClientStream;
import io.grpc.internal.ClientTransport;
import io.opentelemetry.javaagent.extension.instrumentation.TypeInstrumentation;
import io.opentelemetry.javaagent.extension.instrumentation.TypeTransformer;
import io.opentelemetry.javaagent.ldfi.FitModule;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;

/**
 * The client of gRPC, where an attempt gets its stream of whichever connection there is or will be: beneath
 * interceptors and what tries again.
 */
public final class GrpcModule extends FitModule {
  public GrpcModule() {
    super("grpc", new Type(), "GrpcFaults", "Silence", "Later", "Later$Asked");
  }

  @Override
  protected String library() {
    return "grpc-1";
  }

  @Override
  protected String kind() {
    return "rpc";
  }

  static final class Type implements TypeInstrumentation {
    private static final int ARGUMENTS = 4;

    @Override
    public ElementMatcher<TypeDescription> typeMatcher() {
      return named("io.grpc.internal.DelayedClientTransport");
    }

    @Override
    public void transform(TypeTransformer transformer) {
      transformer.applyAdviceToMethod(
          named("newStream").and(takesArguments(ARGUMENTS)).and(takesArgument(0, named("io.grpc.MethodDescriptor"))),
          StreamAdvice.class.getName());
    }
  }

  /** Public, since the agent looks it up by its name. */
  public static final class StreamAdvice {
    private StreamAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class, inline = false)
    public static ClientStream enter(
        @Advice.This ClientTransport transport,
        @Advice.Argument(0) MethodDescriptor<?, ?> method,
        @Advice.Argument(1) Metadata headers,
        @Advice.Argument(2) CallOptions options,
        @Advice.Argument(3) ClientStreamTracer[] tracers) {
      return GrpcFaults.instead(options, tracers, () -> transport.newStream(method, headers, options, tracers));
    }

    @Advice.AssignReturned.ToReturned
    @Advice.OnMethodExit(suppress = Throwable.class, inline = false)
    public static ClientStream exit(@Advice.Enter ClientStream instead) {
      return instead; // null leaves what was returned
    }
  }
}
