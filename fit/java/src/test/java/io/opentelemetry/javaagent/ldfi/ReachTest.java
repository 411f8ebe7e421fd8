package io.opentelemetry.javaagent.ldfi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
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
  void aReportIsOfThisVersion() throws Exception {
    String built = Files.readString(Path.of("pom.xml"));
    assertTrue(built.contains("<artifactId>ldfi-fit</artifactId>\n  <version>" + Reach.VERSION + "</version>"));
  }
}
