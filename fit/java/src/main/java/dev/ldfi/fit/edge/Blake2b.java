package dev.ldfi.fit.edge;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** BLAKE2b (RFC 7693) without a key, with a digest of any size: Java brings none. */
final class Blake2b {
  private static final int BLOCK = 128;
  private static final int ROUNDS = 12;
  private static final long[] IV = {
    0x6a09e667f3bcc908L, 0xbb67ae8584caa73bL, 0x3c6ef372fe94f82bL, 0xa54ff53a5f1d36f1L,
    0x510e527fade682d1L, 0x9b05688c2b3e6c1fL, 0x1f83d9abfb41bd6bL, 0x5be0cd19137e2179L,
  };

  /** Which words of a block each round mixes in, in which order. */
  private static final int[][] SIGMA = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
  };

  /** The columns of the state, and then its diagonals. */
  private static final int[][] LINES = {
    {0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15},
    {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13}, {3, 4, 9, 14},
  };

  private Blake2b() {}

  /** The first eight bytes of a text's digest of eight bytes, as a number. */
  static long number(String text) {
    return digest(text, 8).getLong();
  }

  /** The digest of a text in UTF-8; its size is in bytes, 1 to 64. */
  static ByteBuffer digest(String text, int size) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    long[] state = IV.clone();
    state[0] ^= 0x01010000L ^ size;
    int last = Math.max((bytes.length + BLOCK - 1) / BLOCK, 1) - 1;
    for (int block = 0; block <= last; block++) {
      int end = Math.min((block + 1) * BLOCK, bytes.length);
      compress(state, Arrays.copyOfRange(bytes, block * BLOCK, end), end, block == last);
    }
    ByteBuffer digest = ByteBuffer.allocate(8 * state.length).order(ByteOrder.LITTLE_ENDIAN);
    for (long word : state) {
      digest.putLong(word);
    }
    return ByteBuffer.wrap(Arrays.copyOf(digest.array(), size));
  }

  private static void compress(long[] state, byte[] block, int end, boolean last) {
    ByteBuffer words = ByteBuffer.wrap(Arrays.copyOf(block, BLOCK)).order(ByteOrder.LITTLE_ENDIAN);
    long[] v = Arrays.copyOf(state, 16);
    System.arraycopy(IV, 0, v, 8, 8);
    v[12] ^= end;
    if (last) {
      v[14] = ~v[14];
    }
    for (int round = 0; round < ROUNDS; round++) {
      int[] order = SIGMA[round % SIGMA.length];
      for (int line = 0; line < LINES.length; line++) {
        mix(v, LINES[line], words.getLong(8 * order[2 * line]), words.getLong(8 * order[2 * line + 1]));
      }
    }
    for (int i = 0; i < state.length; i++) {
      state[i] ^= v[i] ^ v[i + 8];
    }
  }

  private static void mix(long[] v, int[] at, long x, long y) {
    half(v, at, x, 32, 24);
    half(v, at, y, 16, 63);
  }

  private static void half(long[] v, int[] at, long word, int one, int other) {
    v[at[0]] += v[at[1]] + word;
    v[at[3]] = Long.rotateRight(v[at[3]] ^ v[at[0]], one);
    v[at[2]] += v[at[3]];
    v[at[1]] = Long.rotateRight(v[at[1]] ^ v[at[2]], other);
  }
}
