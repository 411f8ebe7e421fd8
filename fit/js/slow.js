/**
 * The fault `slow`: an answer's headers come at once, and its body over a length of time, as fit/slow.py has it.
 * It works on what comes over a connection of HTTP/1, so Node's own client, or undici's, reads it and times out
 * over it as it does with any.
 */

import { performance } from 'node:perf_hooks'

/** Milliseconds between two pieces, at most, as long as the body has a byte for each. */
const GAP = 100
const FEWEST = 10
const END = '\r\n\r\n'
/** Bytes of headers: Node's client has refused such by then. */
const LONGEST = 1 << 20

/** When which byte of a body may come; its length is undefined where nobody has announced it. */
class Pace {
  constructor(milliseconds, length) {
    this.milliseconds = milliseconds
    this.length = length
    this.began = performance.now()
  }

  /** For how many milliseconds byte number `at` is not there yet. */
  due(at) {
    const share = at >= this.length ? 1 : this.#which(at) / this.#pieces
    return this.began + this.milliseconds * share - performance.now()
  }

  /** How many of the bytes that are `there` come at once, from number `at` on. */
  size(at, there) {
    this.length ??= there
    if (at >= this.length) return there
    return Math.min(Math.ceil((this.#which(at) * this.length) / this.#pieces) - at, there)
  }

  #which(at) {
    return Math.floor((at * this.#pieces) / this.length) + 1
  }

  get #pieces() {
    return Math.min(Math.max(FEWEST, Math.ceil(this.milliseconds / GAP)), this.length)
  }
}

/** What comes over one connection, on its way to a connection of ours. */
export class Drip {
  #milliseconds
  #strikes
  #held = Buffer.alloc(0)
  #pace
  #at = 0
  #open = false
  #timer
  #after

  /**
   * @param {number} milliseconds
   * @param {() => boolean} strikes is asked when an answer with a body begins, and writes down what happens
   */
  constructor(milliseconds, strikes) {
    this.#milliseconds = milliseconds
    this.#strikes = strikes
  }

  /** Whether there is enough for now. */
  get holding() {
    return this.#timer !== undefined
  }

  /** Take what has come, and `pass` on what may: at once, or later. @param {(bytes: Buffer) => void} pass */
  take(chunk, pass) {
    if (this.#open) return void pass(chunk)
    this.#held = this.#held.length ? Buffer.concat([this.#held, chunk]) : chunk
    if (this.#pace || this.#begun(pass)) this.#go(pass)
    return undefined
  }

  /** Do this as soon as all has been passed on. */
  afterwards(what) {
    if (this.#held.length && !this.#open) this.#after = what
    else what()
  }

  stop() {
    clearTimeout(this.#timer)
  }

  /** Pass headers on; whether a body begins that is to be slow. */
  #begun(pass) {
    for (;;) {
      const end = this.#held.indexOf(END)
      if (end < 0 && this.#held.length <= LONGEST) return false
      const head = end < 0 ? '' : this.#held.toString('latin1', 0, end)
      const status = Number(/^HTTP\/1\.[01] ([1-5]\d\d)/.exec(head)?.[1])
      const length = status ? lengthOf(status, head) : 0
      const interim = status >= 100 && status < 200 && status !== 101
      if (!interim && (length === 0 || !this.#strikes())) {
        this.#finish(pass)
        return false
      }
      pass(this.#held.subarray(0, end + END.length))
      this.#held = this.#held.subarray(end + END.length)
      if (interim) continue
      this.#pace = new Pace(this.#milliseconds, length)
      return true
    }
  }

  #go(pass) {
    while (this.#held.length && !this.holding) {
      const size = this.#pace.size(this.#at, this.#held.length)
      const wait = this.#pace.due(this.#at)
      if (wait > 0) {
        this.#timer = setTimeout(() => {
          this.#timer = undefined
          this.#go(pass)
        }, Math.ceil(wait))
        return
      }
      this.#at += size
      if (this.#at >= this.#pace.length) return void this.#finish(pass)
      const piece = this.#held.subarray(0, size)
      this.#held = this.#held.subarray(size)
      pass(piece)
    }
  }

  #finish(pass) {
    this.#open = true
    const rest = this.#held
    this.#held = Buffer.alloc(0)
    if (rest.length) pass(rest)
    this.#after?.()
  }
}

/** The length of an answer's body; 0 without one, undefined where it is not announced. */
function lengthOf(status, head) {
  if (status === 204 || status === 304 || status < 200) return 0
  if (/^transfer-encoding:.*chunked/im.test(head)) return undefined
  const announced = /^content-length:[ \t]*(\d{1,15})[ \t]*$/im.exec(head)?.[1]
  return announced === undefined ? undefined : Number(announced)
}
