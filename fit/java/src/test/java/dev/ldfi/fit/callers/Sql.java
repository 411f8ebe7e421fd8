package dev.ldfi.fit.callers;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Programs that have a database do something with one row, each in its own way. */
final class Sql {
  static final int PATIENCE = 1; // seconds

  private static final String MARKS = "callers>db:UPDATE:shop/marks";
  private static final String UPDATE = "update marks set n = n + 1 where id = ";

  /** Has something done with the row of this id, and says what came of it. */
  interface Execution {
    String said(Connection connection, int id, int patience) throws SQLException;
  }

  /** Opens a connection to the database at this URL. */
  interface Opening {
    Connection open(String url) throws SQLException;
  }

  /** What a program does, in which connection, and the point of it. */
  record Program(Opening opening, Execution execution, String point) {}

  private Sql() {}

  static Map<String, Program> programs() {
    Map<String, Program> all = new LinkedHashMap<>();
    all.put("Statement.executeUpdate", updating((connection, id, patience) -> "" + statement(connection, patience).executeUpdate(UPDATE + id)));
    all.put("Statement.execute", updating((connection, id, patience) -> "" + statement(connection, patience).execute(UPDATE + id)));
    all.put("Statement.executeBatch", updating(Sql::batch));
    all.put("PreparedStatement.executeUpdate", updating((connection, id, patience) -> "" + prepared(connection, id, patience, "").executeUpdate()));
    all.put("PreparedStatement.executeQuery", updating((connection, id, patience) -> "" + prepared(connection, id, patience, " returning 1").executeQuery().next()));
    all.put("PreparedStatement.executeBatch", updating(Sql::preparedBatch));
    all.put("CallableStatement.execute", new Program(DriverManager::getConnection, Sql::called, "callers>db:CALL:shop"));
    all.put("a pool", new Program(Sql::pooled, Sql::execution, MARKS));
    all.put("a socket's timeout", updating(Sql::withinSocketTimeout));
    return all;
  }

  private static Program updating(Execution execution) {
    return new Program(DriverManager::getConnection, execution, MARKS);
  }

  static String execution(Connection connection, int id, int patience) throws SQLException {
    return "" + prepared(connection, id, patience, "").executeUpdate();
  }

  private static Statement statement(Connection connection, int patience) throws SQLException {
    Statement made = connection.createStatement();
    made.setQueryTimeout(patience);
    return made;
  }

  private static PreparedStatement prepared(Connection connection, int id, int patience, String more)
      throws SQLException {
    PreparedStatement made = connection.prepareStatement(UPDATE + "?" + more);
    made.setQueryTimeout(patience);
    made.setInt(1, id);
    return made;
  }

  private static String batch(Connection connection, int id, int patience) throws SQLException {
    Statement made = statement(connection, patience);
    made.addBatch(UPDATE + id); // of several the agent does not say what they are
    return Arrays.toString(made.executeBatch());
  }

  private static String preparedBatch(Connection connection, int id, int patience) throws SQLException {
    PreparedStatement made = prepared(connection, id, patience, "");
    made.addBatch();
    made.setInt(1, id);
    made.addBatch();
    return Arrays.toString(made.executeBatch());
  }

  private static String called(Connection connection, int id, int patience) throws SQLException {
    CallableStatement made = connection.prepareCall("call touch(?)");
    made.setQueryTimeout(patience);
    made.setInt(1, id);
    return "" + made.execute();
  }

  private static String withinSocketTimeout(Connection connection, int id, int patience) throws SQLException {
    connection.setNetworkTimeout(Runnable::run, 1000 * patience);
    return "" + prepared(connection, id, 0, "").executeUpdate();
  }

  private static Connection pooled(String url) throws SQLException {
    HikariConfig chosen = new HikariConfig();
    chosen.setJdbcUrl(url);
    chosen.setMaximumPoolSize(1);
    return new HikariDataSource(chosen).getConnection();
  }
}
