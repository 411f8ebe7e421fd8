package io.opentelemetry.javaagent.ldfi;

import static dev.ldfi.fit.Vectors.list;
import static dev.ldfi.fit.Vectors.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import dev.ldfi.fit.Vectors;
import io.opentelemetry.javaagent.extension.instrumentation.InstrumentationModule;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class ReachTest {
  @Test
  void aReportNamesAllPointsOfAKind() {
    String said = Reach.said("my shop", Set.of("rpc|delay,grpc", "db|sql", "db|redis"), Set.of("jdbc", "grpc-1"));
    assertEquals(
        "1 java/" + Reach.VERSION + " my_shop>db:*|redis my_shop>db:*|sql my_shop>rpc:*|delay,grpc"
            + " my_shop>library:fit my_shop>library:grpc-1 my_shop>library:jdbc",
        said);
  }

  @Test
  void librariesAreCalledWhatTheVectorsSay() throws IOException {
    Set<String> wanted = new TreeSet<>();
    for (JsonElement each : list(Vectors.of("libraries.json"), "cases")) {
      if (text(each, "held").equals("true") && text(each, "language").equals("java")) {
        wanted.add(text(each, "library"));
      }
    }
    Set<String> held = new TreeSet<>();
    for (InstrumentationModule module : ServiceLoader.load(InstrumentationModule.class)) {
      if (module instanceof FitModule && !((FitModule) module).kind().isEmpty()) {
        held.add(((FitModule) module).library());
      }
    }
    assertEquals(wanted, held);
  }

  @Test
  void aReportIsOfThisVersion() throws Exception {
    String built = Files.readString(Path.of("pom.xml"));
    assertTrue(built.contains("<artifactId>ldfi-fit</artifactId>\n  <version>" + Reach.VERSION + "</version>"));
  }
}
