package dev.ldfi.fit.conformance;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Scope;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.Map;
import java.util.Queue;

/** Runs under the agent: executes statements that it is told, a line of JSON for each, and says what was recorded. */
public final class Statements {
  private Statements() {}

  @SuppressWarnings("try") // a scope is held, and not asked
  public static void main(String[] arguments) throws Exception {
    BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:shop");
        Statement statement = connection.createStatement()) {
      statement.execute("create table marks (id int primary key, n int)");
      for (String line = asked.readLine(); line != null; line = asked.readLine()) {
        JsonObject of = JsonParser.parseString(line).getAsJsonObject();
        Baggage baggage = Baggage.builder().put("fit", of.get("context").getAsString()).build();
        spans().clear();
        try (Scope carried = baggage.makeCurrent()) {
          execute(statement, of.get("text").getAsString(), of.get("batch").getAsInt());
        }
        spans().removeIf(span -> !span.get(".kind").equals("CLIENT"));
        System.out.println(new Gson().toJson(spans().remove()));
      }
    }
  }

  private static void execute(Statement statement, String text, int batch) throws Exception {
    if (batch == 0) {
      statement.execute(text);
      return;
    }
    for (int i = 0; i < batch; i++) {
      statement.addBatch(text);
    }
    statement.executeBatch();
  }

  @SuppressWarnings("unchecked") // put there by the tests' own extension
  private static Queue<Map<String, String>> spans() {
    return (Queue<Map<String, String>>) System.getProperties().get("ldfi.test.spans");
  }
}
