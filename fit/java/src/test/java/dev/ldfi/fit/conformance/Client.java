package dev.ldfi.fit.conformance;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.HttpURLConnection;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.concurrent.ExecutionException;

/** A library that makes HTTP calls. */
interface Client {
  /** What came of a call: status and length of the body. */
  record Seen(int status, int length) {}

  /** Makes a GET with so much patience. */
  Seen get(String url, Duration patience) throws Exception;

  /** In the words of the protocol, how a call failed. */
  static String failure(Throwable failed) {
    for (Throwable each = failed; each != null; each = each.getCause()) {
      String said = String.valueOf(each.getMessage());
      if (each instanceof ConnectException) {
        return "refused";
      } else if (each instanceof HttpTimeoutException || each instanceof SocketTimeoutException) {
        return "timeout";
      } else if (each instanceof SocketException && said.contains("reset")) {
        return "reset";
      } else if (each instanceof EOFException) {
        return "truncated";
      }
    }
    return failed.toString();
  }

  static Client named(String name) {
    HttpClient jdk = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    return switch (name) {
      case "jdk" -> (url, patience) -> seen(jdk.send(request(url, patience), HttpResponse.BodyHandlers.ofByteArray()));
      case "jdk-async" -> (url, patience) -> later(jdk, request(url, patience));
      case "url" -> Client::byUrlConnection;
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static HttpRequest request(String url, Duration patience) {
    return HttpRequest.newBuilder(URI.create(url)).timeout(patience).build();
  }

  private static Seen later(HttpClient client, HttpRequest request) throws Exception {
    try {
      return seen(client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray()).get());
    } catch (ExecutionException failed) {
      throw (Exception) failed.getCause();
    }
  }

  private static Seen seen(HttpResponse<byte[]> response) {
    return new Seen(response.statusCode(), response.body().length);
  }

  private static Seen byUrlConnection(String url, Duration patience) throws IOException {
    HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
    connection.setReadTimeout((int) patience.toMillis());
    int status = connection.getResponseCode();
    var body = status < HttpURLConnection.HTTP_BAD_REQUEST ? connection.getInputStream() : connection.getErrorStream();
    try (body) {
      int length = body == null ? 0 : body.readAllBytes().length;
      if (connection.getContentLength() > length) { // nobody else tells of it
        throw new EOFException("cut after " + length + " bytes");
      }
      return new Seen(status, length);
    }
  }
}
