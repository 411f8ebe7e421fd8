package dev.ldfi.fit.callers;

import java.io.IOException;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hc.client5.http.classic.HttpClient;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.classic.methods.HttpPost;
import org.apache.hc.client5.http.classic.methods.HttpUriRequestBase;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.ContentType;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.io.entity.ByteArrayEntity;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.util.Timeout;

/** Programs that call by Apache HttpClient 5, which tries again by itself where it is not told otherwise. */
final class Apache {
  private Apache() {}

  static Map<String, Http.Caller> callers() {
    CloseableHttpClient client = HttpClients.custom().disableCookieManagement().build();
    Map<String, Http.Caller> all = new LinkedHashMap<>();
    all.put("Apache 5, a handler", (url, patience) -> client.execute(get(url, patience), Apache::said));
    all.put("Apache 5, an answer", (url, patience) -> opened(client, get(url, patience)));
    all.put("Apache 5, once", (url, patience) -> HttpClients.custom().disableAutomaticRetries().build().execute(get(url, patience), Apache::said));
    all.put("Apache 5, with a body", (url, patience) -> client.execute(post(url, patience), Apache::said));
    return all;
  }

  private static HttpUriRequestBase get(String url, Duration patience) {
    return patient(new HttpGet(url), patience);
  }

  private static HttpUriRequestBase post(String url, Duration patience) {
    HttpPost post = new HttpPost(url);
    post.setEntity(new ByteArrayEntity(new byte[100], ContentType.APPLICATION_OCTET_STREAM));
    return patient(post, patience);
  }

  private static HttpUriRequestBase patient(HttpUriRequestBase request, Duration patience) {
    request.setConfig(RequestConfig.custom().setResponseTimeout(Timeout.of(patience)).build());
    return request;
  }

  private static String opened(HttpClient client, HttpUriRequestBase request) throws IOException {
    try (ClassicHttpResponse response = client.executeOpen(host(request), request, null)) {
      return said(response);
    }
  }

  private static HttpHost host(HttpUriRequestBase request) throws IOException {
    try {
      return HttpHost.create(request.getUri());
    } catch (URISyntaxException wrong) {
      throw new IOException(wrong);
    }
  }

  private static String said(ClassicHttpResponse response) throws IOException {
    return response.getCode() + " " + Arrays.toString(response.getHeaders()) + " " + Arrays.toString(EntityUtils.toByteArray(response.getEntity()));
  }
}
