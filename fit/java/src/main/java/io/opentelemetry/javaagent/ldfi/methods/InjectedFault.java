package io.opentelemetry.javaagent.ldfi.methods;

/** What a method throws where an {@code error} is injected: its author has named nothing better. */
public final class InjectedFault extends RuntimeException {
  private static final long serialVersionUID = 1;

  InjectedFault(String message) {
    super(message);
  }
}
