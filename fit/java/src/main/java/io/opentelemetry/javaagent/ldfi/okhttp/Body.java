package io.opentelemetry.javaagent.ldfi.okhttp;

import io.opentelemetry.javaagent.ldfi.Fault;
import java.io.IOException;
import java.net.ProtocolException;
import okhttp3.MediaType;
import okhttp3.ResponseBody;
import okio.Buffer;
import okio.BufferedSource;
import okio.ForwardingSource;
import okio.Okio;

/** The body of an answer in the dependency's place. */
final class Body extends ResponseBody {
  private final String type;
  private final long announced;
  private final BufferedSource source;

  private Body(Fault fault, byte[] bytes) {
    this.type = fault.contentType();
    this.announced = fault.announced();
    this.source = Okio.buffer(new Cut(new Buffer().write(bytes), announced > fault.body().length));
  }

  static Body of(Fault fault, boolean toHead) {
    return new Body(fault, toHead ? new byte[0] : fault.body());
  }

  @Override
  public MediaType contentType() {
    return MediaType.parse(type);
  }

  @Override
  public long contentLength() {
    return announced;
  }

  @Override
  public BufferedSource source() {
    return source;
  }

  /** Ends before its announced end, or where it should. */
  static final class Cut extends ForwardingSource {
    private final boolean early;

    Cut(Buffer bytes, boolean early) {
      super(bytes);
      this.early = early;
    }

    @Override
    public long read(Buffer into, long most) throws IOException {
      long read = super.read(into, most);
      if (read < 0 && early) {
        throw new ProtocolException("unexpected end of stream");
      }
      return read;
    }
  }
}
