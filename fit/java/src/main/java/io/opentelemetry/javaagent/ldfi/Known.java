package io.opentelemetry.javaagent.ldfi;

import dev.ldfi.fit.Points;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** The points whose names were made, remembered within bounds by what these are made of. */
final class Known {
  static final int REMEMBERED = 1024;
  private static final int LONGEST = 1024; // characters: what is longer is made again, and not kept

  private final Map<List<String>, Optional<Point>> points = new ConcurrentHashMap<>();
  private final Map<String, Point> byName = new ConcurrentHashMap<>(); // a hash costs as much as its name

  /** A point: its name, and the hash by which a context has it. */
  static final class Point {
    final String name;
    final String hash;

    Point(String name) {
      this.name = name;
      this.hash = Points.hash(name);
    }
  }

  /** The point that is named by this; null where it names none. */
  Point of(String service, List<String> named) {
    Optional<Point> found = points.get(named);
    if (found == null) {
      found = Optional.ofNullable(Names.made(service, named)).map(this::named);
      if (length(named) <= LONGEST) {
        remember(points, named, found);
      }
    }
    return found.orElse(null);
  }

  private Point named(String name) {
    Point found = byName.get(name);
    if (found == null) {
      found = new Point(name);
      remember(byName, name, found);
    }
    return found;
  }

  private static <K, V> void remember(Map<K, V> within, K key, V value) {
    if (within.size() >= REMEMBERED) {
      within.clear();
    }
    within.put(key, value);
  }

  private static int length(List<String> named) {
    int length = 0;
    for (String each : named) {
      length += each.length();
    }
    return length;
  }

  int size() {
    return points.size();
  }
}
