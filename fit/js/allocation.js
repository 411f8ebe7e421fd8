/**
 * Which devices an experiment claims, and in which arm: the same as fit/protocol/allocation.py, device by device.
 */

import { blake2b } from './blake2b.js'

const RANGE_BITS = 60
const RANGE = 1n << 60n
const DEVICE_BITS = 30

/**
 * The devices of one experiment; `treated`: where treatment ends, `control`: where control begins.
 * @typedef {{factor: bigint, summand: bigint, treated: bigint, control: bigint}} Claim
 */

/**
 * 64 bits that stand for a device from here on; its identifier is not kept anywhere.
 * @param {string} device
 * @returns {bigint}
 */
export function markOf(device) {
  return blake2b(device, 8).readBigUInt64BE()
}

/**
 * @param {string} salt @param {number} treatment @param {number} control shares of all devices, 0 to 1
 * @returns {Claim}
 */
export function claimOf(salt, treatment, control) {
  const digest = blake2b(salt, 16)
  const treated = share(treatment)
  const rest = RANGE - share(control)
  return {
    factor: BigInt.asUintN(RANGE_BITS, digest.readBigUInt64BE(0)),
    summand: BigInt.asUintN(RANGE_BITS, digest.readBigUInt64BE(8)),
    treated,
    control: treated > rest ? treated : rest,
  }
}

function share(of) {
  return BigInt(Math.trunc(of * 2 ** RANGE_BITS))
}

/** What of a mark decides where its device falls. */
export function bitsOf(mark) {
  return BigInt.asUintN(DEVICE_BITS, mark)
}

/**
 * The arm in which a device falls; undefined for nearly every device.
 * @param {Claim} claim @param {bigint} bits
 * @returns {'treatment' | 'control' | undefined}
 */
export function armOf({ factor, summand, treated, control }, bits) {
  const place = BigInt.asUintN(RANGE_BITS, bits * factor + summand)
  if (place < treated) return 'treatment'
  return place >= control ? 'control' : undefined
}
