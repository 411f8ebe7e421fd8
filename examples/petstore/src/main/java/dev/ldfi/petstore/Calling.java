package dev.ldfi.petstore;

import java.time.Duration;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.ClientHttpRequestFactorySettings;
import org.springframework.dao.DataAccessException;
import org.springframework.http.ResponseEntity;
import org.springframework.web.client.RestClient;

/** How services start, and how they call each other. */
public final class Calling {
  private static final ClientHttpRequestFactorySettings PATIENCE =
      ClientHttpRequestFactorySettings.defaults()
          .withConnectTimeout(Duration.ofSeconds(2))
          .withReadTimeout(Duration.ofSeconds(10));

  private Calling() {}

  /** Start the service of this class, on {@code PORT}. */
  public static void start(Class<?> service) {
    SpringApplication.run(service);
  }

  /**
   * The answer without a database. Spring 6.2 has none: it takes an {@link java.io.EOFException} beneath any exception
   * for a client that has gone, and so answers 200 with nothing in it where a connection to the database was lost.
   */
  public static ResponseEntity<String> without(DataAccessException failed) {
    return ResponseEntity.status(503).body("no database: " + failed.getClass().getSimpleName());
  }

  /** A client of the service at the address in the variable {@code name}, over one of the JVM's HTTP clients. */
  public static RestClient of(String name, ClientHttpRequestFactoryBuilder<?> over) {
    return RestClient.builder().baseUrl(System.getenv(name)).requestFactory(over.build(PATIENCE)).build();
  }
}
