package dev.ldfi.fit.edge;

import dev.ldfi.fit.NotUnderstood;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;

/** The lines of a stream of server-sent events, as far as the control plane writes them. */
final class Events {
  private static final byte[] DATA = {'d', 'a', 't', 'a', ':'};

  private final InputStream stream;
  private ByteArrayOutputStream data = new ByteArrayOutputStream();

  Events(InputStream stream) {
    this.stream = new BufferedInputStream(stream);
  }

  /** What a line was. */
  enum Line {
    /** An event is complete: {@link Events#data} has it. */
    EVENT,
    /** A part of one, or nothing. */
    PART,
    /** Something that is no event, as what says that the line is open. */
    OTHER,
    END
  }

  /** Reads the next line; throws {@link NotUnderstood} for an event that is too long. */
  Line next() throws IOException {
    byte[] line = line();
    if (line == null) {
      return Line.END;
    }
    if (line.length == 0) {
      return data.size() > 0 ? Line.EVENT : Line.PART;
    }
    for (int i = 0; i < DATA.length; i++) {
      if (line.length <= i || line[i] != DATA[i]) {
        return Line.OTHER;
      }
    }
    int from = line.length > DATA.length && line[DATA.length] == ' ' ? DATA.length + 1 : DATA.length;
    data.write(line, from, line.length - from);
    data.write('\n');
    check(data);
    return Line.PART;
  }

  /** Takes out the event that is complete. */
  byte[] data() {
    byte[] whole = data.toByteArray();
    data = new ByteArrayOutputStream();
    return whole;
  }

  private byte[] line() throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int next = stream.read(); next != '\n'; next = stream.read()) {
      if (next < 0) {
        return null; // half a line is none
      }
      if (next != '\r') {
        line.write(next);
        check(line);
      }
    }
    return line.toByteArray();
  }

  private static void check(ByteArrayOutputStream read) {
    if (read.size() > Service.MAX_ANSWER) {
      throw new NotUnderstood("more than " + Service.MAX_ANSWER + " bytes");
    }
  }
}
