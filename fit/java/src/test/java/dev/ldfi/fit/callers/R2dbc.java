package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.Result;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Runs under the agent: each program has a PostgreSQL server do something by R2DBC while something really happens to it,
 * and then while it is well and the same is injected. A line of JSON for each says what was seen and what was recorded.
 * What happens last is that the server is killed.
 */
public final class R2dbc {
  static final String LATER = "delay-1000"; // milliseconds

  private static final String KILLED = "error";
  private static final int LATE = 900;
  private static final String POINT = "callers>db:UPDATE:shop/marks";
  private static final String UPDATE = "update marks set n = n + 1 where id = ";

  private final Keys keys;
  private final PostgreSqlServer server;

  private R2dbc(Keys keys, PostgreSqlServer server) {
    this.keys = keys;
    this.server = server;
  }

  /** What each program executes with the row of an id. */
  static Map<String, BiFunction<Connection, Integer, Publisher<? extends Result>>> programs() {
    Map<String, BiFunction<Connection, Integer, Publisher<? extends Result>>> all = new LinkedHashMap<>();
    all.put("Statement", (connection, id) -> connection.createStatement(UPDATE + id).execute());
    all.put("Statement, bound", (connection, id) -> connection.createStatement(UPDATE + "$1").bind("$1", id).execute());
    all.put("Batch", (connection, id) -> connection.createBatch().add(UPDATE + id).execute());
    return all;
  }

  public static void main(String[] arguments) throws Exception {
    R2dbc all = new R2dbc(Keys.parse(arguments[0]), PostgreSqlServer.start());
    all.execute("postgres", "create database shop");
    all.execute("shop", "create table marks (id int primary key, n int)");
    all.execute("shop", "insert into marks select n, 0 from generate_series(1, 99) as n");
    for (String kind : arguments[1].split(" ")) {
      all.compare(kind);
    }
    System.exit(0);
  }

  private void compare(String kind) throws Exception {
    Map<String, String> injected = new LinkedHashMap<>();
    Map<String, Told> told = new LinkedHashMap<>();
    for (String name : programs().keySet()) {
      Look look = new Look(name, kind, 1);
      told.put(name, Told.of(keys, name, kind, POINT, "", look::call));
      injected.put(name, look.after());
    }
    Map<String, String> killed = kind.equals(KILLED) ? killed() : Map.of();
    for (String name : programs().keySet()) {
      Told each = told.get(name);
      String seen = injected.get(name);
      String really = kind.equals(KILLED) ? killed.get(name) : kind.equals(LATER) ? seen : really(name, kind);
      System.out.println(
          new Gson().toJson(new Told(name, kind, really, seen, each.fired(), each.calls(), each.root())));
    }
  }

  /** What all programs see when the server is killed. */
  private Map<String, String> killed() throws Exception {
    Map<String, Look> looks = new LinkedHashMap<>();
    List<Thread> calling = new ArrayList<>();
    java.sql.Connection rival = DriverManager.getConnection(jdbc("shop"));
    rival.setAutoCommit(false);
    for (String name : programs().keySet()) {
      int id = 1 + 2 * looks.size();
      update(rival, id);
      Look look = new Look(name, KILLED, id);
      looks.put(name, look);
      calling.add(new Thread(look::call));
      calling.get(calling.size() - 1).start();
      awaitBlocked(look.process);
    }
    server.kill();
    Map<String, String> seen = new LinkedHashMap<>();
    for (Map.Entry<String, Look> each : looks.entrySet()) {
      calling.remove(0).join();
      seen.put(each.getKey(), each.getValue().after());
    }
    return seen;
  }

  private String really(String name, String kind) throws Exception {
    Look look = new Look(name, kind, 1);
    try (java.sql.Connection rival = DriverManager.getConnection(jdbc("shop"))) {
      rival.setAutoCommit(false);
      Thread strikes = new Thread(() -> strike(look, kind));
      switch (kind) {
        case "sql:readonly" -> look.asked("set transaction read only");
        case "sql:serialization" -> {
          update(rival, 1);
          rival.commit();
        }
        case "sql:deadlock" -> {
          update(rival, 1);
          look.asked("set local deadlock_timeout = '50ms'");
          new Thread(() -> update(rival, 2)).start();
          awaitBlocked(rival.unwrap(org.postgresql.PGConnection.class).getBackendPID());
        }
        default -> {
          update(rival, 1);
          strikes.start();
        }
      }
      look.call();
      strikes.join();
      return look.after();
    }
  }

  private void strike(Look look, String kind) {
    try {
      awaitBlocked(look.process);
      if (kind.equals("reset")) {
        look.relay.reset();
      } else {
        execute("shop", "select pg_terminate_backend(" + look.process + ")");
      }
    } catch (Exception failed) {
      failed.printStackTrace();
    }
  }

  /** Waits until this process of the server waits for another. */
  private void awaitBlocked(int process) throws Exception {
    try (java.sql.Connection third = DriverManager.getConnection(jdbc("shop"));
        Statement statement = third.createStatement()) {
      String asked = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and pid = " + process;
      while (!statement.executeQuery(asked).next()) {
        Thread.sleep(10);
      }
    }
  }

  private static void update(java.sql.Connection rival, int id) {
    try (Statement statement = rival.createStatement()) {
      statement.execute("set local deadlock_timeout = '60s'"); // so it is theirs that is ended
      statement.execute(UPDATE + id);
    } catch (SQLException failed) {
      failed.printStackTrace();
    }
  }

  private void execute(String database, String text) throws SQLException {
    try (java.sql.Connection connection = DriverManager.getConnection(jdbc(database));
        Statement statement = connection.createStatement()) {
      statement.execute(text);
    }
  }

  private String jdbc(String database) {
    return "jdbc:postgresql://127.0.0.1:" + server.port + "/" + database + "?user=ldfi";
  }

  /** What a program sees of one execution and of what comes after it, in a transaction that has begun. */
  private final class Look {
    final Relay relay = Relay.to(server.port);
    final Connection connection;
    final int process;
    private final BiFunction<Connection, Integer, Publisher<? extends Result>> program;
    private final int id;
    private String said;

    Look(String name, String kind, int id) throws Exception {
      this.id = id;
      program = programs().get(name);
      String url = "r2dbc:postgresql://ldfi:x@127.0.0.1:" + relay.port() + "/shop";
      connection = Mono.from(ConnectionFactories.get(url).create()).block();
      process = Integer.parseInt(asked("select pg_backend_pid()"));
      Mono.from(connection.beginTransaction()).block();
      if (kind.equals("sql:serialization")) {
        Mono.from(connection.setTransactionIsolationLevel(IsolationLevel.REPEATABLE_READ)).block();
      }
      asked("select n from marks where id = " + (id + 1) + " for update");
    }

    String asked(String text) {
      return Flux.from(connection.createStatement(text).execute())
          .flatMap(result -> result.map((row, of) -> String.valueOf(row.get(0))))
          .onErrorResume(failed -> Mono.just(seen(failed)))
          .defaultIfEmpty("nothing")
          .blockLast();
    }

    String call() {
      long began = System.nanoTime();
      String came =
          Flux.from(program.apply(connection, id))
              .flatMap(Result::getRowsUpdated)
              .map(String::valueOf)
              .onErrorResume(failed -> Mono.just(seen(failed)))
              .blockLast();
      said = ((System.nanoTime() - began) / 1_000_000 >= LATE ? "late, " : "") + came;
      return said;
    }

    /** What was said, and what becomes of transaction and connection. */
    String after() {
      StringBuilder all = new StringBuilder(said.replaceFirst("^late, (?!1$)", ""));
      all.append("; then ").append(left(asked("select 1")));
      Mono<String> back = Mono.from(connection.rollbackTransaction()).thenReturn("; rolled back");
      all.append(back.onErrorResume(failed -> Mono.just("; not rolled back: " + left(seen(failed)))).block());
      Mono.from(connection.close()).onErrorComplete().block();
      return all.toString();
    }
  }

  /** What is left of a connection: in which words the driver says that there is none depends on when it is asked. */
  private static String left(String said) {
    return said.replaceFirst("^08006 .*", "no connection");
  }

  private static String seen(Throwable failed) {
    String state = failed instanceof R2dbcException said ? said.getSqlState() + " " : "";
    return state + Seen.failed(failed);
  }
}
