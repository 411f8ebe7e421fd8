package dev.ldfi.petstore.catalogue;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import dev.ldfi.petstore.Calling;
import java.time.Duration;
import java.util.Map;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.dao.DataAccessException;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;

/**
 * Which pets there are. Names are kept for a while, so that a dead database shows late; without a price a pet is shown
 * all the same.
 */
@RestController
@SpringBootApplication
public class Catalogue {
  private final RestClient prices = Calling.of("PRICES", ClientHttpRequestFactoryBuilder.simple());
  private final JdbcClient database;
  private final Cache<Integer, String> names;

  Catalogue(JdbcClient database, @Value("${petstore.kept}") Duration kept) {
    this.database = database;
    names = Caffeine.newBuilder().expireAfterWrite(kept).build();
  }

  public static void main(String[] arguments) {
    Calling.start(Catalogue.class);
  }

  @GetMapping("/pets/{pet}")
  Map<String, Object> pet(@PathVariable int pet) {
    return Map.of("pet", pet, "name", names.get(pet, this::name), "price", price(pet));
  }

  private String name(int pet) {
    return database.sql("select name from pets where id = ?").param(pet).query(String.class).single();
  }

  private Object price(int pet) {
    try {
      return prices.get().uri("/prices/{pet}", pet).retrieve().body(Map.class);
    } catch (RestClientException unknown) {
      return "ask us";
    }
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
