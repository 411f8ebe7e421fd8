package dev.ldfi.fit.edge;

import dev.ldfi.fit.NotUnderstood;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** The control plane, as edges speak to it. The token goes there, and to nobody whom it might name. */
final class Service {
  static final int MAX_ANSWER = 4 << 20; // bytes; more is no answer to any question

  private final String url;
  private final String token;
  private final String devices;

  /** One at this address, which is told by what devices are told apart. */
  Service(String url, String token, String devices) {
    this.url = url.replaceAll("/+$", "");
    this.token = token;
    this.devices = devices;
  }

  /** Asks with a GET, and returns an answer that says that all is well; milliseconds without a byte end it. */
  HttpURLConnection get(String path, String accept, int silent) throws IOException {
    HttpURLConnection asked = (HttpURLConnection) new URL(url + path).openConnection();
    limit(asked, accept, silent);
    return checked(asked);
  }

  /** Sends a document, straight and once, and returns the answer to it. */
  String post(String path, String document, int silent) throws IOException {
    byte[] body = document.getBytes(StandardCharsets.UTF_8);
    HttpURLConnection asked = (HttpURLConnection) new URL(url + path).openConnection(Proxy.NO_PROXY);
    asked.setRequestMethod("POST");
    asked.setRequestProperty("Content-Type", "application/json");
    asked.setDoOutput(true);
    asked.setFixedLengthStreamingMode(body.length); // or it is sent anew by itself where a connection ends
    limit(asked, "application/json", silent);
    try (OutputStream out = asked.getOutputStream()) {
      out.write(body);
    }
    return text(whole(checked(asked), Moment.now().after(silent / 1000.0)));
  }

  private void limit(HttpURLConnection asked, String accept, int silent) {
    asked.setInstanceFollowRedirects(false);
    asked.setUseCaches(false);
    asked.setConnectTimeout(Math.min(silent, 5000));
    asked.setReadTimeout(silent);
    asked.setRequestProperty("Authorization", "Bearer " + token);
    asked.setRequestProperty("Accept", accept);
    asked.setRequestProperty("Ldfi-Devices", devices);
  }

  private static HttpURLConnection checked(HttpURLConnection asked) throws IOException {
    int status = asked.getResponseCode();
    if (status / 100 != 2) {
      asked.disconnect();
      throw new IOException("it answers with " + status);
    }
    return asked;
  }

  /** Reads the whole answer; throws {@link NotUnderstood} for what is too long, or no text. */
  static byte[] whole(HttpURLConnection asked, Moment until) throws IOException {
    ByteArrayOutputStream read = new ByteArrayOutputStream();
    byte[] part = new byte[8192];
    try (InputStream body = asked.getInputStream()) {
      for (int size = body.read(part); size >= 0; size = body.read(part)) {
        read.write(part, 0, size);
        if (read.size() > MAX_ANSWER) {
          throw new NotUnderstood("more than " + MAX_ANSWER + " bytes");
        }
        if (until.left() <= 0) {
          throw new IOException("its answer takes too long");
        }
      }
    }
    return read.toByteArray();
  }

  static String text(byte[] body) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
    } catch (CharacterCodingException none) {
      throw new NotUnderstood("not UTF-8");
    }
  }

  @Override
  public String toString() {
    return url;
  }
}
