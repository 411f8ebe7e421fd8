package dev.ldfi.fit.callers;

import com.google.gson.Gson;
import dev.ldfi.fit.Keys;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Runs under the agent: each program has a PostgreSQL server do something while something really happens to it, and
 * then while it is well and the same is injected. A line of JSON for each says what was seen and what was recorded.
 * What happens last is that the server is killed.
 */
public final class Databases {
  private static final int LONG = 60; // seconds
  private static final String KILLED = "error";

  private final Keys keys;
  private final List<String> kinds;
  private final PostgreSqlServer server;
  private final CountDownLatch waiting;

  private Databases(Keys keys, List<String> kinds, PostgreSqlServer server, int programs) {
    this.keys = keys;
    this.kinds = kinds;
    this.server = server;
    this.waiting = new CountDownLatch(programs);
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, Sql.Program> programs = Sql.programs();
    Databases all =
        new Databases(Keys.parse(arguments[0]), List.of(arguments[1].split(" ")), PostgreSqlServer.start(), programs.size());
    all.execute("postgres", "create database shop");
    all.execute("shop", "create table marks (id int primary key, n int)");
    all.execute("shop", "insert into marks select n, 0 from generate_series(1, 99) as n");
    all.execute("shop", "create procedure touch(which int) as 'update marks set n = n + 1 where id = which' language sql");
    ExecutorService pool = Executors.newCachedThreadPool();
    List<Future<List<Told>>> running = new ArrayList<>();
    programs.forEach(
        (name, program) -> {
          int id = 1 + 2 * running.size();
          running.add(pool.submit(() -> all.whole(name, program, id)));
        });
    running.add(pool.submit(all::another));
    all.waiting.await();
    all.server.kill();
    for (Future<List<Told>> each : running) {
      each.get().forEach(told -> System.out.println(new Gson().toJson(told)));
    }
    System.exit(0);
  }

  private List<Told> whole(String name, Sql.Program program, int id) throws Exception {
    try {
      return of(name, program, id);
    } finally {
      waiting.countDown(); // nobody waits for one that has failed
    }
  }

  @SuppressWarnings("try") // a rival is there, and not asked
  private List<Told> of(String name, Sql.Program program, int id) throws Exception {
    List<Told> all = new ArrayList<>();
    for (String kind : kinds) {
      Look injected = new Look(program, kind, id);
      Told told = Told.of(keys, name, kind, program.point(), "", injected::call);
      String seen = injected.after();
      Look really = new Look(program, kind, id);
      try (Rival rival = new Rival(kind, id, really)) {
        really.call();
      }
      all.add(new Told(name, kind, really.after(), seen, told.fired(), told.calls(), told.root()));
    }
    return all;
  }

  /** What a database comes to that is not PostgreSQL. */
  private List<Told> another() throws Exception {
    List<Told> all = new ArrayList<>();
    try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:other")) {
      connection.createStatement().execute("create table marks (id int primary key, n int)");
      connection.createStatement().execute("insert into marks values (1, 0)");
      for (String kind : List.of("error", "sql:deadlock", "delay")) {
        Sql.Execution execution = Sql::execution;
        String point = "callers>db:UPDATE:other/marks";
        all.add(Told.of(keys, "H2", kind, point, "", () -> Look.seen(execution, connection, 1, LONG)));
      }
    }
    return all;
  }

  private void execute(String database, String text) throws SQLException {
    try (Connection connection = open(database, server.port)) {
      connection.createStatement().execute(text);
    }
  }

  private static Connection open(String database, int port) throws SQLException {
    return DriverManager.getConnection(url(database, port));
  }

  private static String url(String database, int port) {
    return "jdbc:postgresql://127.0.0.1:" + port + "/" + database + "?user=ldfi";
  }

  /** What a program sees of one execution and of what comes after it, in a transaction that has begun. */
  private final class Look {
    final Relay relay = Relay.to(server.port);
    final Connection connection;
    private final Sql.Program program;
    private final int id;
    private final int patience;
    private String said;

    Look(Sql.Program program, String kind, int id) throws Exception {
      this.program = program;
      this.id = id;
      this.patience = Told.LASTING.contains(kind) ? Sql.PATIENCE : LONG;
      connection = program.opening().open(url("shop", relay.port()));
      connection.setAutoCommit(false);
      if (kind.equals("sql:serialization")) {
        connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      }
      asked("select n from marks where id = " + (id + 1) + " for update");
    }

    private String asked(String text) throws SQLException {
      try (Statement statement = connection.createStatement();
          ResultSet found = statement.executeQuery(text)) {
        found.next();
        return found.getString(1);
      }
    }

    String call() {
      said = seen(program.execution(), connection, id, patience);
      return said;
    }

    static String seen(Sql.Execution execution, Connection connection, int id, int patience) {
      try {
        return execution.said(connection, id, patience);
      } catch (SQLException failed) {
        return Seen.failed(failed);
      }
    }

    /** What was said, and what becomes of transaction and connection. */
    String after() throws SQLException {
      StringBuilder all = new StringBuilder(said);
      all.append(connection.isClosed() ? "; closed" : "; open");
      try {
        all.append("; then ").append(asked("select 1"));
      } catch (SQLException failed) {
        all.append("; then ").append(Seen.failed(failed));
      }
      try {
        connection.rollback();
        all.append("; rolled back");
      } catch (SQLException failed) {
        all.append("; not rolled back: ").append(Seen.failed(failed));
      }
      connection.close();
      return all.toString();
    }
  }

  /** Brings it about that what a program does fails in one way. */
  private final class Rival implements AutoCloseable {
    private final Connection connection = open("shop", server.port);
    private final String update;
    private final Look look;
    private final int process;

    Rival(String kind, int id, Look look) throws Exception {
      this.look = look;
      this.process = process(look.connection);
      this.update = "update marks set n = n + 1 where id = ";
      connection.setAutoCommit(false);
      switch (kind) {
        case "sql:readonly" -> look.connection.createStatement().execute("set transaction read only");
        case "sql:serialization" -> {
          execute(update + id);
          connection.commit();
        }
        case "sql:deadlock" -> {
          look.connection.createStatement().execute("set local deadlock_timeout = '50ms'");
          execute("set local deadlock_timeout = '60s'"); // so it is theirs that is ended
          execute(update + id);
          int theirs = process(connection);
          later(() -> execute(update + (id + 1)));
          awaitBlocked(theirs);
        }
        default -> {
          execute(update + id);
          later(() -> strike(kind));
        }
      }
    }

    private void strike(String kind) throws Exception {
      if (Told.LASTING.contains(kind)) {
        return;
      }
      awaitBlocked(process);
      if (kind.equals("sql:lost")) {
        execute("select pg_terminate_backend(" + process + ")");
      } else if (kind.equals("reset")) {
        look.relay.reset();
      } else if (kind.equals(KILLED)) {
        waiting.countDown();
      }
    }

    private int process(Connection of) throws SQLException {
      try (Statement statement = of.createStatement();
          ResultSet found = statement.executeQuery("select pg_backend_pid()")) {
        found.next();
        return found.getInt(1);
      }
    }

    /** Waits until this process of the server waits for another. */
    private void awaitBlocked(int process) throws Exception {
      try (Connection third = open("shop", server.port); Statement statement = third.createStatement()) {
        String asked = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and pid = " + process;
        while (!statement.executeQuery(asked).next()) {
          Thread.sleep(10);
        }
      }
    }

    private void execute(String text) throws SQLException {
      connection.createStatement().execute(text);
    }

    @Override
    public void close() throws SQLException {
      if (waiting.getCount() > 0) {
        connection.rollback();
      }
      connection.close();
    }
  }

  /** What goes on beside. */
  private interface Doing {
    void run() throws Exception;
  }

  private static void later(Doing doing) {
    Thread thread =
        new Thread(
            () -> {
              try {
                doing.run();
              } catch (Exception failed) {
                failed.printStackTrace();
              }
            });
    thread.setDaemon(true);
    thread.start();
  }
}
