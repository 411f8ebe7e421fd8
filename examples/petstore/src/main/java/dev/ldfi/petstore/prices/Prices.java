package dev.ldfi.petstore.prices;

import dev.ldfi.petstore.Calling;
import java.util.Map;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** What pets cost. It asks nobody. */
@RestController
@SpringBootApplication(exclude = DataSourceAutoConfiguration.class)
public class Prices {
  public static void main(String[] arguments) {
    Calling.start(Prices.class);
  }

  @GetMapping("/prices/{pet}")
  Map<String, Integer> price(@PathVariable int pet) {
    return Map.of("pet", pet, "price", 10 + pet);
  }

  @GetMapping("/health")
  String health() {
    return "up";
  }
}
