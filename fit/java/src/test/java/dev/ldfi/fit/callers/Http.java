package dev.ldfi.fit.callers;

import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

/** Programs that call over HTTP, each in its own way, and say all that they see. */
final class Http {
  /** A program: what it says of a call of this URL, for which it is so patient. */
  interface Caller {
    String said(String url, Duration patience) throws Exception;
  }

  private Http() {}

  static Map<String, Caller> callers() {
    HttpClient jdk = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    Map<String, Caller> all = new LinkedHashMap<>();
    all.put("HttpClient.send", (url, patience) -> said(jdk.send(request(url, patience), HttpResponse.BodyHandlers.ofByteArray())));
    all.put("HttpClient.sendAsync", (url, patience) -> said(jdk.sendAsync(request(url, patience), HttpResponse.BodyHandlers.ofByteArray()).get()));
    all.put(
        "HttpClient.sendAsync, then",
        (url, patience) ->
            jdk.sendAsync(request(url, patience), HttpResponse.BodyHandlers.ofString())
                .handle((response, failed) -> failed == null ? "" + response.statusCode() : Seen.failed(failed))
                .join());
    all.put("HttpClient, as a stream", (url, patience) -> streamed(jdk.send(request(url, patience), HttpResponse.BodyHandlers.ofInputStream())));
    all.put("HttpURLConnection.getInputStream", (url, patience) -> read(opened(url, patience).getInputStream()));
    all.put("HttpURLConnection.getResponseCode", Http::responseCode);
    all.put("HttpURLConnection.connect", Http::connected);
    all.put("HttpURLConnection, asked again", Http::askedAgain);
    all.put("HttpURLConnection, with a body", Http::posted);
    OkHttpClient ok = new OkHttpClient();
    all.put("OkHttp.execute", (url, patience) -> said(impatient(ok, patience).newCall(get(url)).execute()));
    all.put("OkHttp.enqueue", (url, patience) -> enqueued(impatient(ok, patience).newCall(get(url))));
    all.put(
        "OkHttp, for the whole call",
        (url, patience) -> said(impatient(ok, Duration.ZERO).newBuilder().callTimeout(patience).build().newCall(get(url)).execute()));
    all.put(
        "OkHttp, with a body",
        (url, patience) -> said(impatient(ok, patience).newCall(get(url).newBuilder().post(RequestBody.create(new byte[100])).build()).execute()));
    all.putAll(Apache.callers());
    all.putAll(Apache4.callers());
    all.putAll(Reactive.callers());
    return all;
  }

  private static HttpRequest request(String url, Duration patience) {
    return HttpRequest.newBuilder(URI.create(url)).timeout(patience).build();
  }

  private static String said(HttpResponse<byte[]> response) {
    return response.statusCode() + " " + response.headers().map() + " " + Arrays.toString(response.body());
  }

  private static String streamed(HttpResponse<InputStream> response) throws Exception {
    return response.statusCode() + " " + read(response.body());
  }

  private static HttpURLConnection opened(String url, Duration patience) throws Exception {
    HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
    connection.setReadTimeout((int) patience.toMillis());
    return connection;
  }

  private static String read(InputStream body) throws Exception {
    try (body) {
      return body == null ? "nothing" : Arrays.toString(body.readAllBytes());
    }
  }

  private static String responseCode(String url, Duration patience) throws Exception {
    HttpURLConnection connection = opened(url, patience);
    int status = connection.getResponseCode();
    return status + " " + connection.getHeaderField("Content-Type") + " " + connection.getContentLength() + " "
        + read(status < 400 ? connection.getInputStream() : connection.getErrorStream());
  }

  private static String connected(String url, Duration patience) throws Exception {
    HttpURLConnection connection = opened(url, patience);
    connection.connect();
    return connection.getResponseCode() + " after connecting";
  }

  private static String askedAgain(String url, Duration patience) throws Exception {
    HttpURLConnection connection = opened(url, patience);
    StringBuilder said = new StringBuilder();
    for (int i = 0; i < 2; i++) {
      try {
        said.append(connection.getResponseCode());
        said.append(read(connection.getInputStream()));
      } catch (Exception failed) {
        said.append(Seen.failed(failed));
      }
      said.append("; ");
    }
    return said.toString();
  }

  private static String posted(String url, Duration patience) throws Exception {
    HttpURLConnection connection = opened(url, patience);
    connection.setDoOutput(true);
    try (var out = connection.getOutputStream()) {
      out.write(new byte[100]);
    }
    return connection.getResponseCode() + " to a POST";
  }

  private static OkHttpClient impatient(OkHttpClient client, Duration patience) {
    return client.newBuilder().readTimeout(patience).build();
  }

  private static Request get(String url) {
    return new Request.Builder().url(url).build();
  }

  private static String said(Response response) throws IOException {
    try (response) {
      return response.code() + " " + response.headers().toMultimap() + " " + Arrays.toString(response.body().bytes());
    }
  }

  private static String enqueued(Call call) throws Exception {
    CompletableFuture<String> told = new CompletableFuture<>();
    call.enqueue(
        new Callback() {
          @Override
          public void onResponse(Call of, Response response) throws IOException {
            try {
              told.complete(said(response));
            } catch (IOException failed) {
              told.complete("while it is read: " + Seen.failed(failed));
            }
          }

          @Override
          public void onFailure(Call of, IOException failed) {
            told.complete(Seen.failed(failed));
          }
        });
    return told.get();
  }
}
