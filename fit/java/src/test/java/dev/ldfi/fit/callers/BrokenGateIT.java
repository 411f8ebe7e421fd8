package dev.ldfi.fit.callers;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import io.opentelemetry.javaagent.ldfi.Gate;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Enumeration;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.implementation.ExceptionMethod;
import net.bytebuddy.matcher.ElementMatcher;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Whatever is wrong with the gate, the application does as it would without us: the jar is broken on purpose. */
class BrokenGateIT {
  private static final String CLASS = Gate.class.getName().replace('.', '/') + ".class";
  private static final String KIND = "refused";

  /** What is wrong with it. */
  enum Broken {
    MISSING,
    FAILS_AT_START,
    FAILS_AT_EVERY_CALL;

    /** The class instead; none where it is missing. */
    byte[] instead() {
      ElementMatcher.Junction<MethodDescription> started = namedOneOf("fromEnvironment", "installed", "keys");
      return switch (this) {
        case MISSING -> new byte[0];
        case FAILS_AT_START -> failing(named("fromEnvironment"));
        case FAILS_AT_EVERY_CALL -> failing(not(started));
      };
    }

    private static byte[] failing(ElementMatcher<? super MethodDescription> methods) {
      return new ByteBuddy()
          .redefine(Gate.class)
          .method(methods)
          .intercept(ExceptionMethod.throwing(IllegalStateException.class, "broken on purpose"))
          .make()
          .getBytes();
    }
  }

  @ParameterizedTest
  @EnumSource
  void theApplicationDoesAsWithoutIt(Broken broken, @TempDir Path folder) throws Exception {
    Path jar = folder.resolve("broken.jar");
    write(jar, broken.instead());
    Map<String, String> environment = Map.of("FIT_KEYS", UnderAgent.KEYS);
    UnderAgent.Written written = UnderAgent.run(Cell.of(Cell.NEWEST), jar, Callers.class, KIND, environment);
    assertEquals(CallersIT.PROGRAMS + CallersIT.RETRIED, written.lines().size(), written.log());
    for (String line : written.lines()) {
      Told each = new Gson().fromJson(line, Told.class);
      assertTrue(CallersIT.isWell(each), each.caller() + ": " + each.injected());
      assertEquals("null", each.fired(), each.caller());
    }
  }

  private static void write(Path jar, byte[] instead) throws IOException {
    try (JarFile whole = new JarFile(Path.of("target", "ldfi-fit.jar").toFile());
        OutputStream file = Files.newOutputStream(jar);
        JarOutputStream into = new JarOutputStream(file)) {
      Enumeration<JarEntry> entries = whole.entries();
      while (entries.hasMoreElements()) {
        String name = entries.nextElement().getName();
        if (name.equals(CLASS) && instead.length == 0) {
          continue;
        }
        into.putNextEntry(new JarEntry(name));
        if (name.equals(CLASS)) {
          into.write(instead);
        } else {
          try (InputStream from = whole.getInputStream(whole.getEntry(name))) {
            from.transferTo(into);
          }
        }
      }
    }
  }
}
