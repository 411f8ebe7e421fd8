/**
 * Which rules an edge knows. To know them is one thing: a stream tells them as offers, which nobody may act upon. The
 * right to act is another, and comes with a lease, or with a device that was granted.
 */

import { steady } from './clock.js'
import { Lease, precedes } from './rules.js'

/**
 * Rules, when the right to act on them ends by the steady clock, and whether a stream is open that tells which rules
 * there are.
 * @typedef {{lease: Lease, ends: number, streamed: boolean}} Held
 */

/** @type {Held} */
export const QUIET = Object.freeze({ lease: new Lease(), ends: 0, streamed: false })

export class Known {
  #latest = QUIET
  #closed = false

  /** @param {import('./allowance.js').Allowances} allowances */
  constructor(allowances) {
    this.allowances = allowances
  }

  /** The latest rules, whether anybody may still act on them or not. */
  get latest() {
    return this.#latest
  }

  /** The latest rules, be they in force or offered; those of nobody where they are neither. */
  rules() {
    const { streamed, ends } = this.#latest
    return streamed || ends > steady() ? this.#latest : QUIET
  }

  /** Take over the rules that a stream tells. They are in force for as long as those before them were. */
  offer(lease) {
    if (this.#closed) return
    if (precedes(lease, this.#latest.lease)) {
      this.#change({ streamed: true })
    } else {
      this.allowances.offer(lease.rules)
      this.#change({ lease, streamed: true })
    }
  }

  /** Take over rules that may be acted upon. A stream that tells of another epoch is no longer believed. */
  hold(lease, ends) {
    const { latest } = this
    if (this.#closed || precedes(lease, latest.lease)) return
    this.allowances.renew(lease.rules)
    this.#change({ lease, ends, streamed: latest.streamed && lease.epoch === latest.lease.epoch })
  }

  /**
   * Prolong the lease of the rules of this version, and return them; undefined where others are known by now.
   * @returns {Held | undefined}
   */
  grant(version, ends) {
    if (this.#closed || version !== this.#latest.lease.version) return undefined
    this.#change({ ends: Math.max(ends, this.#latest.ends) })
    return this.#latest
  }

  /** Drop what a stream has offered. */
  withdraw() {
    this.#change({ streamed: false })
  }

  /** End the right to act. */
  lapse() {
    this.#change({ ends: 0 })
  }

  /** Drop everything. */
  silence() {
    this.#change(QUIET)
  }

  /** Drop everything for good. */
  close() {
    this.silence()
    this.#closed = true
  }

  /** @param {Partial<Held>} changed */
  #change(changed) {
    if (!this.#closed) this.#latest = { ...this.#latest, ...changed }
  }
}
