package io.opentelemetry.javaagent.ldfi;

import java.lang.reflect.Method;
import java.util.Optional;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Headers that an application has put into a request itself, as one does that sends on all that it was sent. The agent
 * replaces one header; where there are several of a name, requests of Apache HttpClient keep the others.
 */
final class OwnHeaders {
  private static final Logger LOGGER = Logger.getLogger(OwnHeaders.class.getName());

  /** How requests of a class remove headers, looked for once. */
  private static final ClassValue<Optional<Method>> REMOVING =
      new ClassValue<Optional<Method>>() {
        @Override
        protected Optional<Method> computeValue(Class<?> type) {
          try {
            Method found = type.getMethod("removeHeaders", String.class);
            found.setAccessible(true); // of a class that is not public
            return Optional.of(found);
          } catch (NoSuchMethodException | RuntimeException another) {
            return Optional.empty();
          }
        }
      };

  private OwnHeaders() {}

  /** Removes those of a name from what a propagator is about to write to, where its class can. */
  static void remove(Object carrier, String name) {
    if (carrier == null || removed(carrier, name)) {
      return;
    }
    Object request = Inside.of(carrier, "delegate"); // what the agent wraps version 4's in
    if (request != null) {
      removed(request, name);
    }
  }

  private static boolean removed(Object request, String name) {
    Optional<Method> removing = REMOVING.get(request.getClass());
    if (!removing.isPresent()) {
      return false;
    }
    try {
      removing.get().invoke(request, name);
    } catch (ReflectiveOperationException | RuntimeException failed) {
      LOGGER.log(Level.FINE, "ldfi-fit leaves the headers of a request as they are", failed);
    }
    return true;
  }
}
