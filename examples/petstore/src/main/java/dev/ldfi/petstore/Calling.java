package dev.ldfi.petstore;

import java.time.Duration;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.ClientHttpRequestFactorySettings;
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

  /** A client of the service at the address in the variable {@code name}, over one of the JVM's HTTP clients. */
  public static RestClient of(String name, ClientHttpRequestFactoryBuilder<?> over) {
    return RestClient.builder().baseUrl(System.getenv(name)).requestFactory(over.build(PATIENCE)).build();
  }
}
