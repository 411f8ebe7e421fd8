package dev.ldfi.fit.edge;

import java.nio.ByteBuffer;

/**
 * The devices of one experiment. Each device has a place among 2⁶⁰, by strongly universal hashing with factors drawn
 * from the salt (fit/protocol/allocation.py); the arms grow from opposite ends, so that a wider share moves no device from one
 * arm to the other.
 */
final class Claim {
  private static final long PLACES = 1L << 60;
  private static final long DEVICE_BITS = (1L << 30) - 1;

  private final long factor;
  private final long summand;
  private final long treated; // where treatment ends
  private final long control; // where control begins

  Claim(String salt, double treatment, double control) {
    ByteBuffer drawn = Blake2b.digest(salt, 16);
    this.factor = drawn.getLong();
    this.summand = drawn.getLong();
    this.treated = (long) (treatment * PLACES);
    this.control = Math.max(treated, PLACES - (long) (control * PLACES));
  }

  /** 64 bits that stand for a device; its identifier is not kept anywhere. */
  static long markOf(String device) {
    return Blake2b.number(device);
  }

  /** The arm in which a device falls; null for nearly every device. */
  Arm armOf(long mark) {
    long place = ((mark & DEVICE_BITS) * factor + summand) & (PLACES - 1);
    if (place < treated) {
      return Arm.TREATMENT;
    }
    return place >= control ? Arm.CONTROL : null;
  }
}
