/**
 * Halting an edge by itself, without anybody's network: FIT_HALT is `1` when the process starts, or the file
 * that FIT_HALT_FILE names is there. It is looked for four times a second at most, and only while rules are armed.
 */

import { lstatSync } from 'node:fs'

import { steady } from './clock.js'

const LOOK_SECONDS = 0.25

export class LocalHalt {
  #next = -1
  #halted = false

  constructor({ FIT_HALT, FIT_HALT_FILE = '' } = process.env, clock = steady) {
    this.always = FIT_HALT === '1'
    this.file = FIT_HALT_FILE
    this.clock = clock
  }

  /** Whether this edge is halted, as of a moment ago. Never throws. */
  holds() {
    if (this.always || !this.file) return this.always
    const now = this.clock()
    if (now >= this.#next) {
      this.#next = now + LOOK_SECONDS
      this.#halted = isThere(this.file)
    }
    return this.#halted
  }
}

function isThere(file) {
  try {
    lstatSync(file)
    return true
  } catch {
    return false
  }
}
