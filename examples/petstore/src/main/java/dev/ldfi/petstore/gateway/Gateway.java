package dev.ldfi.petstore.gateway;

import dev.ldfi.petstore.Calling;
import io.github.resilience4j.circuitbreaker.CallNotPermittedException;
import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig;
import java.time.Duration;
import java.util.function.Supplier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;

/**
 * The way in. In front of the orders stands a circuit breaker, and where a call failed or the breaker is open the
 * request is forwarded to a fallback, as gateways do. The fallback is written for GET, and nobody thought of POST: that
 * is answered 405.
 */
@Controller
@SpringBootApplication(exclude = DataSourceAutoConfiguration.class)
public class Gateway {
  private static final String FALLBACK = "forward:/fallback";

  private final RestClient catalogue = Calling.of("CATALOGUE", ClientHttpRequestFactoryBuilder.jdk());
  private final RestClient orders = Calling.of("ORDERS", ClientHttpRequestFactoryBuilder.jdk());
  private final CircuitBreaker breaker;

  Gateway(@Value("${petstore.window}") int window, @Value("${petstore.share}") float share,
      @Value("${petstore.open}") Duration open) {
    breaker = CircuitBreaker.of("orders", CircuitBreakerConfig.custom()
        .slidingWindowSize(window)
        .minimumNumberOfCalls(window)
        .failureRateThreshold(share)
        .waitDurationInOpenState(open)
        .automaticTransitionFromOpenToHalfOpenEnabled(true)
        .permittedNumberOfCallsInHalfOpenState(2)
        .build());
  }

  public static void main(String[] arguments) {
    Calling.start(Gateway.class);
  }

  @GetMapping("/pets/{pet}")
  ResponseEntity<String> pet(@PathVariable int pet) {
    try {
      return ResponseEntity.ok(catalogue.get().uri("/pets/{pet}", pet).retrieve().body(String.class));
    } catch (RestClientException gone) {
      return ResponseEntity.status(502).body("no catalogue");
    }
  }

  @GetMapping("/orders/{order}")
  Object order(@PathVariable long order) {
    return broken(() -> orders.get().uri("/orders/{order}", order).retrieve().body(String.class));
  }

  @PostMapping("/orders")
  Object take(@RequestParam int pet) {
    return broken(() -> orders.post().uri("/orders?pet={pet}", pet).retrieve().body(String.class));
  }

  private Object broken(Supplier<String> call) {
    try {
      return ResponseEntity.ok(breaker.executeSupplier(call));
    } catch (CallNotPermittedException | RestClientException failed) {
      return FALLBACK;
    }
  }

  @GetMapping("/fallback")
  ResponseEntity<String> fallback() {
    return ResponseEntity.ok().header("x-degraded", "orders").body("your orders are safe; look again later");
  }

  /** What the breaker is: CLOSED, OPEN or HALF_OPEN. */
  @GetMapping("/breaker")
  ResponseEntity<String> breaker() {
    return ResponseEntity.ok(breaker.getState().name());
  }

  @GetMapping("/health")
  ResponseEntity<String> health() {
    return ResponseEntity.ok("up");
  }
}
