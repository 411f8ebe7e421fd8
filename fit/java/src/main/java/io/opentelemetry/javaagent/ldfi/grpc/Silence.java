package io.opentelemetry.javaagent.ldfi.grpc;

import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.internal.ClientStreamListener;
import io.grpc.internal.NoopClientStream;

/** A stream of which nothing comes until whoever waits for it gives it up. */
public final class Silence extends NoopClientStream {
  private volatile ClientStreamListener listener;

  @Override
  public void start(ClientStreamListener starts) {
    listener = starts;
  }

  @Override
  public void cancel(Status reason) {
    ClientStreamListener told = listener;
    if (told != null) {
      told.closed(reason, ClientStreamListener.RpcProgress.PROCESSED, new Metadata());
    }
  }
}
