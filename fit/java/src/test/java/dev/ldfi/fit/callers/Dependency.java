package dev.ldfi.fit.callers;

import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A server to which what a kind of fault is really happens, for each of its connections. */
final class Dependency {
  /** A name that does not resolve. */
  static final String NOBODY = "nobody.invalid";

  /** The kind of which such a name is known, and the ones of the dependencies here. */
  static final String UNRESOLVED = "unresolved";

  /** What follows the name of a program that calls an address, of which nothing has to be looked up. */
  static final String BY_ADDRESS = ", by an address";

  private static final String CUT = "{\"why\": \"fault injected\", \"mo";
  private static final byte[] GARBAGE = "\u00ff\u0000\u00fefault injected\u00c3(".getBytes(StandardCharsets.ISO_8859_1);

  private final String kind;
  private final ServerSocket listening;
  private boolean served;

  private Dependency(String kind) throws IOException {
    this.kind = kind;
    this.listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  }

  /** Starts one, and returns where it is. */
  static String at(String kind) throws IOException {
    if (kind.equals(UNRESOLVED)) {
      return NOBODY + ":80";
    }
    Dependency started = new Dependency(kind);
    int port = started.listening.getLocalPort();
    if (kind.equals("refused")) {
      started.listening.close();
    } else {
      Thread serving = new Thread(started::serve);
      serving.setDaemon(true);
      serving.start();
    }
    return "127.0.0.1:" + port;
  }

  /** What a call goes to that is to fail in this way: a name where it has to be one. */
  static String named(String at, String kind) {
    return kind.equals(UNRESOLVED) ? at.replace("127.0.0.1", "localhost") : at;
  }

  private void serve() {
    while (true) {
      try {
        Socket caller = listening.accept();
        boolean first = !served;
        served = true;
        new Thread(() -> answer(caller, first)).start();
      } catch (IOException closed) {
        return;
      }
    }
  }

  private void answer(Socket caller, boolean first) {
    try {
      if (kind.equals("kept") || kind.equals("stale")) {
        keep(caller, kind.equals("stale") && first);
        return;
      }
      requested(caller);
      if (kind.equals("timeout") || kind.equals("delay")) {
        Thread.sleep(10_000);
      } else if (kind.equals("reset")) {
        caller.setSoLinger(true, 0);
      } else {
        send(caller.getOutputStream());
      }
      caller.close();
    } catch (IOException | InterruptedException gone) {
      Thread.currentThread().interrupt();
    }
  }

  /** Answers one request after the other, or resets the connection at the second. */
  private void keep(Socket caller, boolean reset) throws IOException {
    while (true) {
      requested(caller);
      caller.getOutputStream().write("HTTP/1.1 200 Said\r\nContent-Length: 0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
      if (reset) {
        requested(caller);
        caller.setSoLinger(true, 0);
        caller.close();
        return;
      }
    }
  }

  private static void requested(Socket caller) throws IOException {
    StringBuilder head = new StringBuilder();
    while (head.indexOf("\r\n\r\n") < 0) {
      int read = caller.getInputStream().read();
      if (read < 0) {
        throw new EOFException();
      }
      head.append((char) read);
    }
  }

  private void send(OutputStream out) throws IOException {
    byte[] body =
        switch (kind) {
          case "empty" -> new byte[0];
          case "truncated" -> CUT.getBytes(StandardCharsets.UTF_8);
          case "corrupt" -> GARBAGE;
          case "ok" -> "fine".getBytes(StandardCharsets.UTF_8);
          default -> "fault injected".getBytes(StandardCharsets.UTF_8);
        };
    int length = body.length + (kind.equals("truncated") ? 35 : 0);
    String status = kind.startsWith("status:") ? kind.substring(7) : kind.equals("error") ? "503" : "200";
    String type = kind.startsWith("status:") || kind.equals("error") ? "text/plain" : "application/json";
    String head =
        "HTTP/1.1 " + status + " Said\r\nContent-Type: " + type + "\r\nContent-Length: " + length
            + "\r\nConnection: close\r\n\r\n";
    out.write(head.getBytes(StandardCharsets.US_ASCII));
    out.write(body);
    out.flush();
  }
}
