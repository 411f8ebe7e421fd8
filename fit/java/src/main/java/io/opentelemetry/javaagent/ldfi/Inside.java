package io.opentelemetry.javaagent.ldfi;

import java.lang.reflect.Field;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** What libraries do not show of themselves. */
public final class Inside {
  /** The fields of a class that were looked for, kept where it is. */
  private static final ClassValue<Map<String, Optional<Field>>> FOUND =
      new ClassValue<Map<String, Optional<Field>>>() {
        @Override
        protected Map<String, Optional<Field>> computeValue(Class<?> type) {
          return new ConcurrentHashMap<>();
        }
      };

  private Inside() {}

  /**
   * What stands in a field of an object, or in a field of what stands there, and so on; null where one has no field of
   * that name, or does not let anybody see.
   */
  public static Object of(Object object, String... fields) {
    Object found = object;
    for (int i = 0; i < fields.length && found != null; i++) {
      found = at(found, fields[i]);
    }
    return found;
  }

  private static Object at(Object object, String field) {
    Map<String, Optional<Field>> known = FOUND.get(object.getClass());
    Optional<Field> found = known.get(field);
    if (found == null) {
      found = find(object.getClass(), field);
      known.put(field, found);
    }
    try {
      return found.isPresent() ? found.get().get(object) : null;
    } catch (IllegalAccessException never) {
      return null;
    }
  }

  private static Optional<Field> find(Class<?> type, String name) {
    for (Class<?> each = type; each != null; each = each.getSuperclass()) {
      try {
        Field found = each.getDeclaredField(name);
        found.setAccessible(true);
        return Optional.of(found);
      } catch (NoSuchFieldException inherited) {
        continue;
      } catch (RuntimeException hidden) {
        return Optional.empty();
      }
    }
    return Optional.empty();
  }
}
