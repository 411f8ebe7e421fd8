package dev.ldfi.fit.callers;

import dev.ldfi.fit.Keys;
import dev.ldfi.fit.edge.Sent;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The service behind an edge: it remembers what it was sent last. The agent does not instrument it. */
final class NextService {
  private static final String ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

  private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final Keys keys;
  private volatile Sent last;

  private NextService(Keys keys) throws IOException {
    this.keys = keys;
  }

  static NextService started(Keys keys) throws IOException {
    NextService made = new NextService(keys);
    Thread serving = new Thread(made::serve);
    serving.setDaemon(true);
    serving.start();
    return made;
  }

  int port() {
    return listening.getLocalPort();
  }

  /** Returns what it was sent since the last call of this; null for nothing. */
  Sent take() {
    Sent taken = last;
    last = null;
    return taken;
  }

  private void serve() {
    while (true) {
      try (Socket socket = listening.accept()) {
        socket.setSoTimeout(10_000);
        last = read(new InputStreamReader(socket.getInputStream(), StandardCharsets.ISO_8859_1));
        socket.getOutputStream().write(ANSWER.getBytes(StandardCharsets.ISO_8859_1));
      } catch (IOException gone) {
        continue; // a client that has closed its connection early
      }
    }
  }

  private Sent read(InputStreamReader request) throws IOException {
    BufferedReader head = new BufferedReader(request);
    List<String> baggage = new ArrayList<>();
    String trace = "";
    for (String line = head.readLine(); line != null && !line.isEmpty(); line = head.readLine()) {
      String name = line.split(":")[0].toLowerCase(Locale.ROOT);
      String value = line.substring(line.indexOf(':') + 1).trim();
      if (name.equals("baggage")) {
        baggage.add(value);
      } else if (name.equals("traceparent")) {
        trace = value;
      }
    }
    return Sent.of(keys, String.join(",", baggage), trace);
  }
}
