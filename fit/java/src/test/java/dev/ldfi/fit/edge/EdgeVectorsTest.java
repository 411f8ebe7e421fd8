package dev.ldfi.fit.edge;

import static dev.ldfi.fit.Vectors.list;
import static dev.ldfi.fit.Vectors.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.ldfi.fit.Json;
import dev.ldfi.fit.Keys;
import dev.ldfi.fit.NotUnderstood;
import dev.ldfi.fit.Refused;
import dev.ldfi.fit.Vectors;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What edges in all languages do alike: fit/protocol/vectors/edge.json and features.json. */
class EdgeVectorsTest {
  private static List<JsonElement> of(String name, int least) throws IOException {
    List<JsonElement> found = list(Vectors.of("edge.json"), name);
    assertTrue(found.size() >= least, found.size() + " " + name);
    return found;
  }

  @Test
  void devicesHaveTheSameMarks() throws IOException {
    for (JsonElement each : of("marks", 40)) {
      assertEquals(
          text(each, "mark"), String.format("%016x", Claim.markOf(text(each, "device"))), each.toString());
    }
  }

  @Test
  void leasesAreReadAllOrNothingAndClaimTheSameDevices() throws IOException {
    List<JsonElement> devices = of("marks", 40);
    for (JsonElement each : of("leases", 60)) {
      String document = each.getAsJsonObject().get("document").toString();
      JsonElement wanted = each.getAsJsonObject().get("lease");
      if (wanted.isJsonNull()) {
        assertThrows(NotUnderstood.class, () -> Rules.read(document), document);
        continue;
      }
      Lease read = Rules.read(document);
      Map<String, List<List<String>>> claims = new HashMap<>();
      for (JsonElement device : devices) {
        for (Lease.Claimed found : read.claims(Claim.markOf(text(device, "device")))) {
          claims
              .computeIfAbsent(text(device, "device"), it -> new ArrayList<>())
              .add(List.of(found.rule.experiment, word(found.arm)));
        }
      }
      JsonObject lease = wanted.getAsJsonObject();
      assertEquals(lease.get("seconds").getAsDouble(), read.seconds, document);
      assertEquals(texts(lease.get("wanted")), read.wanted, document);
      Map<String, List<List<String>>> theirs = new HashMap<>();
      lease.getAsJsonObject("claims").entrySet().forEach(
          found -> {
            List<List<String>> pairs = new ArrayList<>();
            found.getValue().getAsJsonArray().forEach(
                pair -> pairs.add(pair.getAsJsonArray().asList().stream().map(JsonElement::getAsString).toList()));
            theirs.put(found.getKey(), pairs);
          });
      assertEquals(theirs, claims, document);
    }
  }

  private static String word(Arm arm) {
    return arm.name().toLowerCase(Locale.ROOT);
  }

  private static Arm arm(JsonElement of) {
    return Arm.valueOf(text(of, "arm").toUpperCase(Locale.ROOT));
  }

  private static Set<String> texts(JsonElement of) {
    Set<String> found = new HashSet<>();
    of.getAsJsonArray().forEach(each -> found.add(each.getAsString()));
    return found;
  }

  @Test
  void devicesAreThoseOfTheVectors() throws IOException {
    List<JsonElement> cases = list(Vectors.of("devices.json"), "cases");
    for (JsonElement each : cases) {
      Devices devices =
          new Devices(Map.of("FIT_DEVICE", text(each, "setting"), "FORWARDED_ALLOW_IPS", text(each, "trusted")));
      String found =
          devices.of(
              name -> {
                List<String> values = new ArrayList<>();
                for (JsonElement header : each.getAsJsonObject().getAsJsonArray("headers")) {
                  JsonArray pair = header.getAsJsonArray();
                  if (pair.get(0).getAsString().equals(name)) {
                    values.add(pair.get(1).getAsString());
                  }
                }
                return values;
              },
              () -> text(each, "peer"));
      assertEquals(text(each, "device"), found, each.toString());
    }
    assertTrue(cases.size() > 400);
  }

  @Test
  void whatIsNoLeaseArmsNothing() {
    for (String none :
        List.of(
            "", "{", "[]", "null", "7", "{\"rules\": NaN}", "[".repeat(100_000), "{'version': 'v'}",
            "{\"version\":\"v\",\"lease_seconds\":1,\"rules\":[]}{}",
            "{\"version\":\"v\",\"lease_seconds\":01,\"rules\":[]}",
            "{\"version\":\"\t\",\"lease_seconds\":1,\"rules\":[]}",
            "{\"version\":\"v\",\"lease_seconds\":1,\"rules\":[],}")) {
      assertThrows(NotUnderstood.class, () -> Rules.read(none), none);
    }
  }

  @Test
  void featuresAreThoseOfRequestsWhoseBodyIsNotRead() throws IOException {
    List<JsonElement> requests = new ArrayList<>(list(Vectors.of("features.json"), "requests"));
    requests.addAll(of("features", 100));
    int count = 0;
    for (JsonElement each : requests) {
      JsonObject of = each.getAsJsonObject();
      List<Map.Entry<String, String>> headers = new ArrayList<>();
      for (JsonElement header : of.getAsJsonArray("headers")) {
        JsonArray pair = header.getAsJsonArray();
        headers.add(Map.entry(pair.get(0).getAsString(), pair.get(1).getAsString()));
      }
      Set<String> wanted = of.has("wanted") ? texts(of.get("wanted")) : Set.of("header.x-device-type");
      Arrived request = new Arrived(text(of, "method"), text(of, "path"), text(of, "query"), headers);
      Map<String, String> found = request.features(wanted);
      if (of.has("body") && !of.get("body").isJsonNull()) {
        assertEquals("body", found.get("unread"), of.toString());
        continue;
      }
      Map<String, String> theirs = new HashMap<>();
      of.getAsJsonObject("features").entrySet().forEach(
          feature -> theirs.put(feature.getKey(), feature.getValue().getAsString()));
      assertEquals(theirs, found, of.toString());
      count++;
    }
    assertTrue(count >= 165, count + " requests");
  }

  @Test
  void predicatesHoldForTheSameRequests() throws IOException {
    for (JsonElement each : list(Vectors.of("features.json"), "predicates")) {
      Map<String, String> features = new HashMap<>();
      each.getAsJsonObject().getAsJsonObject("features").entrySet().forEach(
          feature -> features.put(feature.getKey(), feature.getValue().getAsString()));
      boolean holds =
          list(each.getAsJsonObject(), "conditions").stream()
              .map(said -> Rules.condition(Json.read(said.toString())))
              .filter(condition -> !condition.guards())
              .allMatch(condition -> condition.holds(features));
      assertEquals(each.getAsJsonObject().get("holds").getAsBoolean(), holds, each.toString());
    }
  }

  @Test
  void contextsAreSignedCharacterByCharacterAlike() throws IOException {
    Keys keys = Keys.parse(text(Vectors.of("edge.json"), "keys"));
    for (JsonElement each : of("contexts", 60)) {
      JsonObject of = each.getAsJsonObject();
      List<PlannedFault> faults =
          list(of, "faults").stream().map(said -> PlannedFault.parse(said.getAsString())).toList();
      Stamp stamp =
          new Stamp(
              text(of, "experiment"),
              arm(of),
              of.get("expires").getAsLong(),
              faults,
              of.get("delay_ms").getAsLong(),
              text(of, "lot"));
      String signed;
      try {
        signed = stamp.sign(keys);
      } catch (Refused refused) {
        signed = "";
      }
      assertEquals(text(of, "value"), signed, of.toString());
    }
  }

  @Test
  void lengthsAreDrawnAlike() throws IOException {
    for (JsonElement each : of("lengths", 300)) {
      long drawn = PlannedFault.parse(text(each, "fault")).milliseconds(9_999_999, text(each, "lot"));
      assertEquals(each.getAsJsonObject().get("milliseconds").getAsLong(), drawn, each.toString());
    }
  }

  @Test
  void ourEntriesAreFoundInTheBaggage() throws IOException {
    for (JsonElement each : of("baggage", 20)) {
      BaggageHeader read = new BaggageHeader(text(each, "header"));
      List<String> values =
          list(each.getAsJsonObject(), "values").stream().map(JsonElement::getAsString).toList();
      assertEquals(values, read.values, each.toString());
      assertEquals(text(each, "without"), read.others, each.toString());
    }
  }

  @Test
  void allowancesCountAlike() throws IOException {
    for (JsonElement history : of("allowances", 12)) {
      Allowances counted = new Allowances();
      Allowances.Report report = counted.report();
      for (JsonElement step : history.getAsJsonArray()) {
        report = take(step.getAsJsonObject(), counted, report);
        assertEquals(step.getAsJsonObject().get("urgent").getAsBoolean(), counted.isUrgent(), step.toString());
      }
    }
  }

  private static Allowances.Report take(JsonObject step, Allowances counted, Allowances.Report report) {
    switch (text(step, "do")) {
      case "renew" -> {
        Map<String, Long> members = new LinkedHashMap<>();
        JsonObject said = step.getAsJsonObject("members");
        said.keySet().stream()
            .sorted()
            .forEach(name -> members.put(name, said.get(name).isJsonNull() ? null : said.get(name).getAsLong()));
        counted.renew(members);
        return report;
      }
      case "admit" -> {
        Allowances.Answer answer =
            counted.admit(new Asking(text(step, "experiment"), arm(step), Claim.markOf(text(step, "device"))));
        boolean admitted = step.get("answer").getAsBoolean();
        boolean knew = step.get("knew").getAsBoolean();
        assertEquals(
            !admitted
                ? Allowances.Answer.TURNED_AWAY
                : knew ? Allowances.Answer.ADMITTED_BEFORE : Allowances.Answer.ADMITTED,
            answer,
            step.toString());
        return report;
      }
      case "report" -> {
        Allowances.Report told = counted.report();
        JsonElement wanted = step.get("answer");
        assertEquals(text(wanted, "used"), told.used(), step.toString());
        assertEquals(text(wanted, "control"), told.control(), step.toString());
        assertEquals(text(wanted, "wants"), told.wants(), step.toString());
        return told;
      }
      case "settle" -> {
        counted.settle(report);
        return new Allowances.Report(List.of(), 0, 0);
      }
      default -> throw new IllegalArgumentException(step.toString());
    }
  }
}
