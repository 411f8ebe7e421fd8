/**
 * Asks for devices that may be stamped if the control plane grants it, made while their requests wait: fit/allowance_requests.py.
 *
 * The answer has 20 ms; a device for which none comes in that time is in neither arm. After an ask that failed nobody
 * is asked for a while, so that a control plane in trouble costs requests nothing.
 */

import { untraced } from './arrival.js'
import { steady } from './clock.js'
import { protocolOf } from './line.js'
import { within } from './request.js'
import { MAX_LEASE_SECONDS } from './rules.js'

/** How long a request waits for an answer. */
const WITHIN_MS = 20
/** How long an answer that comes too late is waited for, to have its connection again. */
const STRAY_MS = 2000
/** Asks at once, each over a connection that is kept, but not for so long that the server might close it. */
const CONNECTIONS = { keepAlive: true, maxSockets: 4, timeout: 4000 }

const FAILED_MS = 250 // nobody is asked after a failure; doubles
const LONGEST_FAILED_MS = 1000
const REFUSED_MS = 200 // no device of an experiment is asked for after one was refused
const MAX_ANSWER = 4096
const MAX_REFUSED = 1000

/**
 * The device that is asked for.
 * @typedef {{experiment: string, arm: 'treatment' | 'control', mark: bigint}} Whom
 */

/**
 * By which lease a device may be stamped, and whether it was enrolled before.
 * @typedef {{held: import('./known.js').Held, again: boolean}} Enrolled
 */

export class Asks {
  /** @type {Map<string, Promise<Enrolled | undefined>>} */
  #pending = new Map()
  #refused = new Map()
  #failures = 0
  #again = 0 // when to ask again after a failure

  /** @param {import('./poll.js').RulesPoll} poll @param {() => void} tell that an ask is settled */
  constructor(poll, tell, withinMs = WITHIN_MS) {
    this.poll = poll
    this.tell = tell
    this.withinMs = withinMs
    this.agent = new (protocolOf(poll.url).Agent)(CONNECTIONS)
  }

  /**
   * Enrol a device if it is granted. Whoever comes while it is asked for waits for the same answer; undefined where
   * it is not enrolled, and at once where nobody is to be asked now.
   * @param {string} version of the rules that were decided by
   * @param {Whom} whom
   * @returns {Promise<Enrolled | undefined> | undefined}
   */
  enrol(version, whom) {
    const { experiment, arm, mark } = whom
    const key = `${experiment} ${arm} ${mark}`
    const pending = this.#pending.get(key)
    if (pending) return pending.then((enrolled) => enrolled && { ...enrolled, again: true })
    const now = performance.now()
    if (now < this.#again) {
      this.poll.allowances.late += 1
      return undefined
    }
    if (now < (this.#refused.get(experiment) ?? 0)) return undefined
    const asked = this.#ask(version, whom).finally(() => this.#pending.delete(key))
    this.#pending.set(key, asked)
    return asked
  }

  async #ask(version, whom) {
    const { allowances, known } = this.poll
    const { experiment, arm, mark } = whom
    const ask = allowances.asks.next()
    const askedAt = steady()
    const began = performance.now()
    let held
    try {
      const answer = await this.#answer({ edge: this.poll.edge, experiment, arm, ask, version })
      if (performance.now() - began > this.withinMs) throw new Error('no answer in time')
      this.#answered(experiment, answer.granted)
      if (answer.granted && answer.version === version) held = known.grant(version, askedAt + answer.seconds)
    } catch {
      this.#failed(began)
      allowances.late += 1
    }
    const enrolled = held && allowances.enrol(experiment, arm, mark)
    allowances.asks.settle(ask)
    this.tell()
    return enrolled ? { held, again: false } : undefined
  }

  #answered(experiment, granted) {
    this.#failures = 0
    this.#again = 0
    if (this.#refused.size >= MAX_REFUSED) this.#refused.clear()
    if (granted) this.#refused.delete(experiment)
    else this.#refused.set(experiment, performance.now() + REFUSED_MS)
  }

  /** Those that fail together are one failure. */
  #failed(began) {
    if (began < this.#again) return
    this.#again = performance.now() + Math.min(LONGEST_FAILED_MS, FAILED_MS * 2 ** Math.min(this.#failures, 10))
    this.#failures += 1
  }

  /** The answer to a question. One that is still without a connection when it is late is never sent. */
  #answer(question) {
    const waiting = new AbortController()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error('no answer in time'))
        waiting.abort()
      }, this.withinMs)
      within(undefined, () => untraced(() => this.#posted(JSON.stringify(question), waiting.signal)))
        .then(answerOf)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer))
    })
  }

  #posted(text, waiting) {
    const { url, token } = this.poll
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': 'application/json' }
    const options = { method: 'POST', headers, agent: this.agent, signal: AbortSignal.timeout(STRAY_MS) }
    return new Promise((resolve, reject) => {
      const request = protocolOf(url).request(`${url}/api/v1/edge/asks`, options, (response) => {
        let body = ''
        response.setEncoding('utf8').on('error', reject)
          .on('data', (piece) => {
            body += piece
            if (body.length > MAX_ANSWER) request.destroy(new Error('no answer to this question'))
          })
          .on('end', () => resolve({ status: response.statusCode, body }))
      })
      const drop = () => request.destroy()
      waiting.addEventListener('abort', drop)
      request.on('socket', (socket) => {
        waiting.removeEventListener('abort', drop)
        socket.unref()
      })
      request.on('error', (error) => {
        const closed = request.reusedSocket && error.code === 'ECONNRESET' // by the server, while it was idle
        if (closed && !waiting.aborted) resolve(this.#posted(text, waiting))
        else reject(error)
      })
      request.end(text)
    })
  }
}

function answerOf({ status, body }) {
  if (status < 200 || status > 299) throw new Error(`it answers with ${status}`)
  const { granted, lease_seconds: seconds, version } = JSON.parse(body)
  if (typeof granted !== 'boolean' || typeof version !== 'string' || !(typeof seconds === 'number' && seconds >= 0)) {
    throw new Error('no answer to this question')
  }
  return { granted, version, seconds: Math.min(seconds, MAX_LEASE_SECONDS) }
}
