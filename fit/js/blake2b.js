/** BLAKE2b (RFC 7693), unkeyed, with a digest of any size: node:crypto has it with 64 bytes only. */

const BLOCK = 128
/** A word of 64 bits is two of 32 here, the lower one first. */
const IV = Int32Array.of(
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
)
/** Which words of a block each round mixes in, in which order. */
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
]
const ROUNDS = 12
/** The columns of the state, and then its diagonals. */
const LINES = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
]

const v = new Int32Array(32) // signed, since V8 reckons fastest with those
const m = new Int32Array(32)

/**
 * The digest of a text or of bytes.
 * @param {string | Uint8Array} data a text is taken as UTF-8
 * @param {number} size of the digest, in bytes: 1 to 64
 */
export function blake2b(data, size) {
  const bytes = Buffer.from(data)
  const h = IV.slice()
  h[0] ^= 0x01010000 ^ size
  const last = Math.max(Math.ceil(bytes.length / BLOCK), 1) - 1
  for (let at = 0; at < last; at++) compress(h, bytes, at * BLOCK, (at + 1) * BLOCK, false)
  compress(h, bytes, last * BLOCK, bytes.length, true)
  const digest = Buffer.alloc(64)
  h.forEach((half, at) => digest.writeInt32LE(half, 4 * at))
  return digest.subarray(0, size)
}

/** Mix the block from `start` to `end`, which may be cut short, into the state `h`. */
function compress(h, bytes, start, end, last) {
  const block = Buffer.alloc(BLOCK)
  bytes.copy(block, 0, start, end)
  for (let at = 0; at < 32; at++) m[at] = block.readInt32LE(4 * at)
  v.set(h)
  v.set(IV, 16)
  v[24] ^= end // of texts below 4 GiB the upper half is 0
  if (last) {
    v[28] = ~v[28]
    v[29] = ~v[29]
  }
  for (let round = 0; round < ROUNDS; round++) {
    const order = SIGMA[round % SIGMA.length]
    for (let line = 0; line < 8; line++) {
      const at = LINES[line]
      mix(2 * at[0], 2 * at[1], 2 * at[2], 2 * at[3], 2 * order[2 * line], 2 * order[2 * line + 1])
    }
  }
  for (let at = 0; at < 16; at++) h[at] ^= v[at] ^ v[at + 16]
}

/** The function G; everything by the place of its lower half. */
function mix(a, b, c, d, x, y) {
  add(a, v[b], v[b + 1])
  add(a, m[x], m[x + 1])
  turn(d, a, 32)
  add(c, v[d], v[d + 1])
  turn(b, c, 24)
  add(a, v[b], v[b + 1])
  add(a, m[y], m[y + 1])
  turn(d, a, 16)
  add(c, v[d], v[d + 1])
  turn(b, c, 63)
}

function add(at, low, high) {
  const before = v[at]
  const sum = (before + low) | 0
  const carry = ((before & low) | ((before | low) & ~sum)) >>> 31
  v[at] = sum
  v[at + 1] = (v[at + 1] + high + carry) | 0
}

/** XOR one word with another, and rotate it to the right by so many bits. */
function turn(at, by, bits) {
  const low = v[at] ^ v[by]
  const high = v[at + 1] ^ v[by + 1]
  if (bits === 32) {
    v[at] = high
    v[at + 1] = low
  } else if (bits === 63) {
    v[at] = (low << 1) | (high >>> 31)
    v[at + 1] = (high << 1) | (low >>> 31)
  } else {
    v[at] = (low >>> bits) | (high << (32 - bits))
    v[at + 1] = (high >>> bits) | (low << (32 - bits))
  }
}
