package dev.ldfi.fit.callers;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Stands between one caller and a server, and can reset their connection. */
final class Relay {
  private final ServerSocket listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
  private final int server;
  private volatile Socket caller;

  private Relay(int server) throws IOException {
    this.server = server;
  }

  static Relay to(int port) throws IOException {
    Relay made = new Relay(port);
    start(made::serve);
    return made;
  }

  int port() {
    return listening.getLocalPort();
  }

  void reset() throws IOException {
    caller.setSoLinger(true, 0);
    caller.close();
  }

  private void serve() throws IOException {
    while (true) { // a driver that has had enough says so by a connection of its own
      Socket accepted = listening.accept();
      Socket behind = new Socket(InetAddress.getLoopbackAddress(), server);
      caller = caller == null ? accepted : caller;
      start(() -> pass(accepted, behind));
      start(() -> pass(behind, accepted));
    }
  }

  /** Passes on what comes, and that nothing more does. */
  private static void pass(Socket from, Socket to) throws IOException {
    try (to) {
      from.getInputStream().transferTo(to.getOutputStream());
    }
  }

  /** What a thread does until its sockets are closed. */
  private interface Serving {
    void run() throws IOException;
  }

  private static void start(Serving serving) {
    Thread thread =
        new Thread(
            () -> {
              try {
                serving.run();
              } catch (IOException closed) {
                // it is over
              }
            });
    thread.setDaemon(true);
    thread.start();
  }
}
