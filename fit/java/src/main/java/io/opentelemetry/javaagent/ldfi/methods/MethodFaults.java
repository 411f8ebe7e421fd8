package io.opentelemetry.javaagent.ldfi.methods;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import io.opentelemetry.javaagent.ldfi.OwnCall;
import java.lang.annotation.Annotation;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** What a call of a named method comes to when a fault hits it. It holds up its thread, as the method does. */
public final class MethodFaults {
  private static final String RAISES = "exception:";
  private static final String INJECTED = "fault injected";
  private static final String ANNOTATION = "dev.ldfi.fit.FaultPoint";

  private MethodFaults() {}

  /** What the call fails with, or null, and the call. */
  public static Object[] enter(Class<?> type, String name, String descriptor) {
    OwnCall call = OwnCall.begin(name, type.getName());
    try {
      return new Object[] {call == null || !Gate.isArmed() ? null : instead(call, type, name, descriptor), call};
    } catch (RuntimeException | LinkageError ours) {
      return new Object[] {null, call}; // which has to be ended
    }
  }

  private static Throwable instead(OwnCall call, Class<?> type, String name, String descriptor) {
    Throwable[] failure = new Throwable[1];
    Fault fault =
        call.pass(
            possible -> {
              failure[0] = failure(possible, type, name, descriptor); // it is there before it is claimed
              return failure[0] != null || possible.is("delay");
            });
    if (fault != null && fault.is("delay")) {
      hang(fault.longest);
    }
    return fault == null ? null : failure[0];
  }

  /** Ends the call, with what was thrown or is about to be. */
  public static void exit(Object[] entered, Throwable thrown) {
    if (entered != null && entered[1] != null) {
      ((OwnCall) entered[1]).end(entered[0] == null ? thrown : (Throwable) entered[0]);
    }
  }

  /** What the method can throw in this way; null where it cannot. */
  private static Throwable failure(Fault fault, Class<?> type, String name, String descriptor) {
    if (fault.is("error")) {
      return new InjectedFault(INJECTED + " at " + type.getName() + "." + name);
    }
    if (!fault.kind.startsWith(RAISES)) {
      return null;
    }
    String raised = fault.kind.substring(RAISES.length());
    for (Method each : type.getDeclaredMethods()) {
      if (each.getName().equals(name) && descriptor(each).equals(descriptor)) {
        return raisable(each).stream()
            .filter(one -> one.getSimpleName().equals(raised))
            .findFirst()
            .map(MethodFaults::made)
            .orElse(null);
      }
    }
    return null;
  }

  private static String descriptor(Method method) {
    return MethodType.methodType(method.getReturnType(), method.getParameterTypes()).toMethodDescriptorString();
  }

  private static List<Class<?>> raisable(Method method) {
    List<Class<?>> all = new ArrayList<>(Arrays.asList(method.getExceptionTypes()));
    for (Annotation each : method.getAnnotations()) {
      if (each.annotationType().getName().equals(ANNOTATION)) {
        all.addAll(raisedBy(each));
      }
    }
    return all;
  }

  /** What the annotation says, whose class is the application's and not ours. */
  private static List<Class<?>> raisedBy(Annotation annotation) {
    try {
      return Arrays.asList((Class<?>[]) annotation.annotationType().getMethod("raises").invoke(annotation));
    } catch (ReflectiveOperationException older) {
      return Collections.emptyList();
    }
  }

  private static Throwable made(Class<?> type) {
    try {
      return (Throwable) accessible(type.getDeclaredConstructor(String.class)).newInstance(INJECTED);
    } catch (ReflectiveOperationException | RuntimeException takesNoWords) {
      try {
        return (Throwable) accessible(type.getDeclaredConstructor()).newInstance();
      } catch (ReflectiveOperationException | RuntimeException cannotBeMade) {
        return null;
      }
    }
  }

  private static Constructor<?> accessible(Constructor<?> constructor) {
    if (!Modifier.isPublic(constructor.getModifiers())
        || !Modifier.isPublic(constructor.getDeclaringClass().getModifiers())) {
      constructor.setAccessible(true);
    }
    return constructor;
  }

  private static void hang(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt(); // whoever asks is told
    }
  }
}
