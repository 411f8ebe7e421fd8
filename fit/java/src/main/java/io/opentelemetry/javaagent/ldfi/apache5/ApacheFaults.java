package io.opentelemetry.javaagent.ldfi.apache5;

import io.opentelemetry.javaagent.ldfi.Fault;
import io.opentelemetry.javaagent.ldfi.Gate;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import org.apache.hc.client5.http.ConnectExceptionSupport;
import org.apache.hc.client5.http.classic.ExecChain;
import org.apache.hc.core5.http.ClassicHttpRequest;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.ContentType;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.impl.io.ContentLengthInputStream;
import org.apache.hc.core5.http.impl.io.SessionInputBufferImpl;
import org.apache.hc.core5.http.io.entity.InputStreamEntity;
import org.apache.hc.core5.http.message.BasicClassicHttpResponse;
import org.apache.hc.core5.util.Timeout;

/** What an attempt of Apache HttpClient comes to when a fault hits it. It holds up its thread, as the attempt does. */
public final class ApacheFaults {
  private static final int BUFFER = 1024; // bytes
  private static final int LOOKS = 10; // milliseconds between them, at whether the call is given up

  private ApacheFaults() {}

  /** The answer or what the attempt fails with, one of them null; null makes it. */
  public static Object[] instead(ClassicHttpRequest request, ExecChain.Scope scope) {
    if (!Gate.isArmed()) {
      return null;
    }
    long patience = patience(scope);
    Fault fault = Gate.pass(possible -> can(possible, request, scope, patience));
    if (fault == null) {
      return null;
    }
    if (fault.isUnconnected()) {
      return failed(unconnected(fault, scope.route.getTargetHost()));
    }
    switch (fault.kind) {
      case "reset":
        return failed(new SocketException("Connection reset"));
      case "delay":
      case "timeout":
        boolean late = fault.outlasts(patience);
        if (!hangs(late ? patience : fault.longest, scope)) {
          return failed(new SocketException("Socket closed"));
        }
        return late ? failed(new SocketTimeoutException("Read timed out")) : null;
      default:
        return new Object[] {answer(fault, request), null};
    }
  }

  private static boolean can(Fault fault, ClassicHttpRequest request, ExecChain.Scope scope, long patience) {
    if (fault.is("timeout")) {
      return fault.outlasts(patience);
    }
    return fault.is("reset")
        || fault.is("delay")
        || fault.isUnconnected() && scope.route.getProxyHost() == null
        || fault.isAnswer() && !(fault.needsBody() && isToHead(request));
  }

  private static boolean isToHead(ClassicHttpRequest request) {
    return request.getMethod().equals("HEAD");
  }

  /** Milliseconds that the caller waits for an answer, as far as the request says so; 0: for ever. */
  private static long patience(ExecChain.Scope scope) {
    Timeout timeout = scope.clientContext.getRequestConfigOrDefault().getResponseTimeout();
    return timeout == null ? 0 : timeout.toMilliseconds();
  }

  /** Waits; whether to the end, as nobody has given the call up. */
  private static boolean hangs(long milliseconds, ExecChain.Scope scope) {
    long end = System.nanoTime() + milliseconds * 1_000_000;
    try {
      while (!scope.execRuntime.isExecutionAborted() && end - System.nanoTime() > 0) {
        Thread.sleep(LOOKS);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    return !scope.execRuntime.isExecutionAborted();
  }

  private static Object[] failed(IOException failure) {
    return new Object[] {null, failure};
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
    return ConnectExceptionSupport.enhance(cause, host, addresses);
  }

  private static ClassicHttpResponse answer(Fault fault, ClassicHttpRequest request) {
    ClassicHttpResponse answer = new BasicClassicHttpResponse(fault.status(), "Fault Injected");
    answer.addHeader("Content-Type", fault.contentType());
    answer.addHeader("Content-Length", fault.announced());
    answer.addHeader("Connection", "close");
    if (!isToHead(request)) {
      InputStream sent = new ByteArrayInputStream(fault.body());
      InputStream body = new ContentLengthInputStream(new SessionInputBufferImpl(BUFFER), sent, fault.announced());
      answer.setEntity(new InputStreamEntity(body, fault.announced(), ContentType.parse(fault.contentType())));
    }
    return answer;
  }
}
