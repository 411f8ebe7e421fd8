package dev.ldfi.fit.edge;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Against a control plane that answers asks and nothing else. */
class AsksTest {
  private static final String GRANTED = "{\"granted\":true,\"lease_seconds\":5,\"version\":\"e-1\"}";
  private static final Asking WHOM = new Asking("e1", Arm.TREATMENT, 17);
  private static final int PATIENT = 10_000; // the machine may have much to do

  private final ExecutorService requests = Executors.newCachedThreadPool();
  private final Queue<String> asked = new ConcurrentLinkedQueue<>();
  private volatile String answer = GRANTED;
  private volatile long takes; // milliseconds
  private HttpServer server;

  @BeforeEach
  void starts() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(requests);
    server.createContext("/api/v1/edge/asks", this::answer);
    server.start();
  }

  @AfterEach
  void ends() {
    server.stop(0);
    requests.shutdownNow();
  }

  private void answer(HttpExchange exchange) throws IOException {
    asked.add(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
    try {
      Thread.sleep(takes);
    } catch (InterruptedException over) {
      return;
    }
    exchange.sendResponseHeaders(answer.isEmpty() ? 503 : 200, 0);
    exchange.getResponseBody().write(answer.getBytes(StandardCharsets.UTF_8));
    exchange.close();
  }

  /** What asks there, by an offer of which nobody may treat any device by itself. */
  private Poll poll(int within) {
    Poll made = new Poll(new Service("http://127.0.0.1:" + server.getAddress().getPort(), "t", "header"), Runnable::run, within);
    made.known.offer(new Lease("e-1", 0, true, List.of(), Set.of()));
    made.allowances.offer(Map.of("e1", 0L, "e2", 0L));
    return made;
  }

  @Test
  void whoIsGrantedIsEnrolledAndTheLeaseProlonged() {
    Poll poll = poll(PATIENT);
    Admission admission = poll.enrol(poll.known.rules(), WHOM);
    assertTrue(admission.under.isInForce());
    assertEquals(
        List.of(
            "{\"edge\":\"" + poll.edge + "\",\"experiment\":\"e1\",\"arm\":\"treatment\",\"ask\":1,\"version\":\"e-1\"}"),
        List.copyOf(asked));
    assertTrue(poll.enrol(poll.known.rules(), WHOM).again);
    assertEquals(1, asked.size());
    assertEquals("e1:1", poll.allowances.report().used());
    assertEquals(1, poll.allowances.report().asked);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "", "[]", "{}", "{\"granted\":true,\"version\":\"e-1\"}",
        "{\"granted\":true,\"lease_seconds\":-1,\"version\":\"e-1\"}"
      })
  void whatIsNoGrantIsAFailure(String said) {
    answer = said;
    Poll poll = poll(PATIENT);
    for (int i = 0; i < 3; i++) { // who comes within the rest that follows has nobody asked
      assertNull(poll.enrol(poll.known.rules(), WHOM));
    }
    assertEquals(1, poll.allowances.report().asked);
    assertEquals("", poll.allowances.report().used());
    assertTrue(poll.allowances.report().late >= asked.size());
  }

  @Test
  void whoIsRefusedIsNotLate() {
    answer = GRANTED.replace("true", "false");
    Poll poll = poll(PATIENT);
    assertNull(poll.enrol(poll.known.rules(), WHOM));
    assertEquals(0, poll.allowances.report().late);
    answer = GRANTED;
    assertEquals(2, poll.enrol(poll.known.rules(), new Asking("e2", Arm.CONTROL, 17)).under.ends.left() / 2000);
  }

  @Test
  void rulesThatHaveChangedMeanwhileMakeAGrantVoid() {
    Poll poll = poll(PATIENT);
    Held before = poll.known.rules();
    poll.known.offer(new Lease("e-2", 0, true, List.of(), Set.of()));
    poll.allowances.offer(Map.of("e1", 0L));
    assertNull(poll.enrol(before, WHOM));
  }

  @Test
  void asksThatComeAtOnceForOneDeviceAreOne() throws Exception {
    takes = 300;
    Poll poll = poll(PATIENT);
    Held held = poll.known.rules();
    List<Future<Admission>> all =
        IntStream.range(0, 8).mapToObj(i -> requests.submit(() -> poll.enrol(held, WHOM))).toList();
    int first = 0;
    for (Future<Admission> each : all) {
      first += each.get().again ? 0 : 1;
    }
    assertEquals(1, first);
    assertEquals(1, asked.size());
  }

  @Test
  void noRequestWaitsForAnAnswerThatDoesNotCome() throws Exception {
    takes = 1500;
    Poll poll = poll(Asks.WITHIN);
    Held held = poll.known.rules();
    long began = System.nanoTime();
    List<Future<Admission>> all =
        IntStream.range(0, 40) // more than are asked for at once
            .mapToObj(i -> requests.submit(() -> poll.enrol(held, new Asking("e1", Arm.CONTROL, i))))
            .toList();
    for (Future<Admission> each : all) {
      assertNull(each.get());
    }
    assertTrue(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began) < takes);
    assertEquals(40, poll.allowances.report().late);
  }
}
