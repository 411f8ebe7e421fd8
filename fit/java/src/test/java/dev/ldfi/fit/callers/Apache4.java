package dev.ldfi.fit.callers;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.http.HttpResponse;
import org.apache.http.client.config.RequestConfig;
import org.apache.http.client.methods.CloseableHttpResponse;
import org.apache.http.client.methods.HttpGet;
import org.apache.http.client.methods.HttpPost;
import org.apache.http.client.methods.HttpRequestBase;
import org.apache.http.entity.ByteArrayEntity;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClients;
import org.apache.http.util.EntityUtils;

/** Programs that call by Apache HttpClient 4, which tries again by itself where it is not told otherwise. */
final class Apache4 {
  private Apache4() {}

  static Map<String, Http.Caller> callers() {
    CloseableHttpClient client = HttpClients.createDefault();
    Map<String, Http.Caller> all = new LinkedHashMap<>();
    all.put("Apache 4, a handler", (url, patience) -> client.execute(patient(new HttpGet(url), patience), Apache4::said));
    all.put("Apache 4, an answer", (url, patience) -> opened(client, patient(new HttpGet(url), patience)));
    all.put("Apache 4, minimal", (url, patience) -> opened(HttpClients.createMinimal(), patient(new HttpGet(url), patience)));
    all.put("Apache 4, with a body", (url, patience) -> client.execute(patient(post(url), patience), Apache4::said));
    return all;
  }

  private static HttpPost post(String url) {
    HttpPost post = new HttpPost(url);
    post.setEntity(new ByteArrayEntity(new byte[100]));
    return post;
  }

  private static HttpRequestBase patient(HttpRequestBase request, Duration patience) {
    request.setConfig(RequestConfig.custom().setSocketTimeout((int) patience.toMillis()).build());
    return request;
  }

  private static String opened(CloseableHttpClient client, HttpRequestBase request) throws IOException {
    try (CloseableHttpResponse response = client.execute(request)) {
      return said(response);
    }
  }

  private static String said(HttpResponse response) throws IOException {
    return response.getStatusLine().getStatusCode() + " " + Arrays.toString(response.getAllHeaders()) + " " + Arrays.toString(EntityUtils.toByteArray(response.getEntity()));
  }
}
