package io.opentelemetry.javaagent.ldfi.apache4;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import org.apache.http.HttpClientConnection;
import org.apache.http.HttpHost;
import org.apache.http.HttpRequest;
import org.apache.http.HttpResponse;
import org.apache.http.HttpVersion;
import org.apache.http.client.protocol.HttpClientContext;
import org.apache.http.conn.HttpHostConnectException;
import org.apache.http.conn.routing.RouteInfo;
import org.apache.http.entity.BasicHttpEntity;
import org.apache.http.impl.io.ContentLengthInputStream;
import org.apache.http.impl.io.HttpTransportMetricsImpl;
import org.apache.http.impl.io.SessionInputBufferImpl;
import org.apache.http.message.BasicHttpResponse;
import org.apache.http.protocol.HttpContext;

/** What an attempt of Apache HttpClient 4 comes to when a fault hits it. It holds up its thread, as the attempt does. */
public final class Apache4Faults {
  private static final int BUFFER = 1024; // bytes
  private static final int LOOKS = 10; // milliseconds between them, at whether the call is given up

  private Apache4Faults() {}

  /** The answer or what the attempt fails with, one of them null; null makes it. */
  public static Object[] instead(HttpRequest request, HttpClientConnection connection, HttpContext context) {
    if (!Gate.isArmed() || method(request).equals("CONNECT")) {
      return null;
    }
    int patience = Math.max(connection.getSocketTimeout(), 0); // milliseconds; 0: for ever
    Fault fault = Gate.pass(possible -> can(possible, request, context, patience));
    if (fault == null) {
      return null;
    }
    if (fault.isUnconnected()) {
      return failed(unconnected(fault, route(context).getTargetHost()));
    }
    switch (fault.kind) {
      case "reset":
        return sent(context, new SocketException("Connection reset"));
      case "delay":
      case "timeout":
        boolean late = fault.outlasts(patience);
        if (!hangs(late ? patience : fault.longest, connection)) {
          return sent(context, new SocketException("Socket closed"));
        }
        return late ? sent(context, new SocketTimeoutException("Read timed out")) : null;
      default:
        return new Object[] {answer(fault, request), null};
    }
  }

  private static boolean can(Fault fault, HttpRequest request, HttpContext context, int patience) {
    if (fault.is("timeout")) {
      return fault.outlasts(patience);
    }
    return fault.is("reset")
        || fault.is("delay")
        || fault.isUnconnected() && route(context) != null && route(context).getProxyHost() == null
        || fault.isAnswer() && !(fault.needsBody() && method(request).equals("HEAD"));
  }

  private static String method(HttpRequest request) {
    return request.getRequestLine().getMethod();
  }

  private static RouteInfo route(HttpContext context) {
    return HttpClientContext.adapt(context).getHttpRoute();
  }

  /** Waits; whether to the end, as nobody has given the call up. */
  private static boolean hangs(long milliseconds, HttpClientConnection connection) {
    long end = System.nanoTime() + milliseconds * 1_000_000;
    try {
      while (connection.isOpen() && end - System.nanoTime() > 0) {
        Thread.sleep(LOOKS);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    return connection.isOpen();
  }

  private static Object[] failed(IOException failure) {
    return new Object[] {null, failure};
  }

  /** Fails after the request went out, which makes a difference to whoever thinks of trying again. */
  private static Object[] sent(HttpContext context, IOException failure) {
    context.setAttribute(HttpClientContext.HTTP_REQ_SENT, Boolean.TRUE);
    return failed(failure);
  }

  private static IOException unconnected(Fault fault, HttpHost host) {
    IOException cause = fault.unconnected();
    if (!(cause instanceof ConnectException)) {
      return cause;
    }
    InetAddress[] addresses = new InetAddress[0];
    try {
      addresses = InetAddress.getAllByName(host.getHostName());
    } catch (UnknownHostException unknown) {
      // then none is named
    }
    return new HttpHostConnectException((ConnectException) cause, host, addresses);
  }

  private static HttpResponse answer(Fault fault, HttpRequest request) {
    HttpResponse answer = new BasicHttpResponse(HttpVersion.HTTP_1_1, fault.status(), "Fault Injected");
    answer.addHeader("Content-Type", fault.contentType());
    answer.addHeader("Content-Length", String.valueOf(fault.announced()));
    answer.addHeader("Connection", "close");
    if (!method(request).equals("HEAD")) {
      SessionInputBufferImpl sent = new SessionInputBufferImpl(new HttpTransportMetricsImpl(), BUFFER);
      sent.bind(new ByteArrayInputStream(fault.body()));
      BasicHttpEntity body = new BasicHttpEntity();
      body.setContent(new ContentLengthInputStream(sent, fault.announced()));
      body.setContentLength(fault.announced());
      body.setContentType(fault.contentType());
      answer.setEntity(body);
    }
    return answer;
  }
}
