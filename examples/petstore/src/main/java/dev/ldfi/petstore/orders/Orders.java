package dev.ldfi.petstore.orders;

import dev.ldfi.petstore.Calling;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import java.time.Duration;
import java.util.Map;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.dao.DataAccessException;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;

/**
 * What was ordered. Taking an order needs the database alone; showing one needs its price too, and where there is none
 * asks again, of the service that has just failed.
 */
@RestController
@SpringBootApplication
public class Orders {
  private final RestClient prices = Calling.of("PRICES", ClientHttpRequestFactoryBuilder.httpComponents()
      .withHttpClientCustomizer(client -> client.disableAutomaticRetries()));
  private final Retry twice = Retry.of("prices", RetryConfig.custom()
      .maxAttempts(2)
      .waitDuration(Duration.ofMillis(20))
      .retryExceptions(RestClientException.class)
      .build());
  private final JdbcClient database;

  Orders(JdbcClient database) {
    this.database = database;
  }

  public static void main(String[] arguments) {
    Calling.start(Orders.class);
  }

  @PostMapping("/orders")
  Map<String, Integer> order(@RequestParam int pet) {
    database.sql("insert into orders (pet) values (?)").param(pet).update();
    return Map.of("ordered", pet);
  }

  @GetMapping("/orders/{order}")
  Map<String, Object> order(@PathVariable("order") long order) {
    int pet = database.sql("select pet from orders where id = ?").param(order).query(Integer.class).single();
    return Map.of("pet", pet, "price", twice.executeSupplier(() -> price(pet)));
  }

  private Object price(int pet) {
    return prices.get().uri("/prices/{pet}", pet).retrieve().body(Map.class);
  }

  @ExceptionHandler
  ResponseEntity<String> gone(DataAccessException failed) {
    return Calling.without(failed);
  }

  @GetMapping("/health")
  String health() {
    return "up";
  }
}
