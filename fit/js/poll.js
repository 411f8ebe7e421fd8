/**
 * The edge's line to the control plane: a long poll beside the requests, as fit/poll.py does it.
 *
 * It fetches the rules, as a lease, and reports how many devices this edge has treated. While the line is down it
 * tries again, ever more slowly, and the lease it holds runs out by itself. It keeps no process alive.
 */

import { randomBytes } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'

import { Allowances, written } from './allowance.js'
import { untraced } from './arrival.js'
import { steady } from './clock.js'
import { within } from './request.js'
import { Lease, leaseOf, MalformedRules } from './rules.js'

const WAIT_SECONDS = 2
const ARMED_WAIT_SECONDS = 1
const SHORTEST_SECONDS = 0.1 // from one question to the next
const RETRY_SECONDS = 0.5
const LONGEST_RETRY_SECONDS = 10
const ANSWER_SECONDS = 5 // how much later than asked for an answer may come
const MAX_DOCUMENT = 4 * 1024 * 1024

/**
 * A lease, and when it ends by the steady clock.
 * @typedef {{lease: Lease, ends: number}} Held
 */

/** @type {Held} */
const QUIET = { lease: new Lease(), ends: 0 }

/** Holds the current lease and the allowances. */
export class RulesPoll {
  allowances = new Allowances()
  edge = randomBytes(8).toString('hex')
  #held = QUIET
  #answer = { text: '', lease: QUIET.lease }
  #started = false
  #stopped = false

  /** @param {string} url the service's @param {string} token */
  constructor(url, token) {
    this.url = url.replace(/\/+$/, '')
    this.token = token
  }

  /** A poll of LDFI_URL and LDFI_TOKEN; undefined where either is missing or no HTTP URL. */
  static fromEnvironment({ LDFI_URL: url, LDFI_TOKEN: token } = process.env) {
    if (!url || !token) return undefined
    if (/^https?:\/\//.test(url) && URL.canParse(url)) return new RulesPoll(url, token)
    process.emitWarning(`fit: the edge stays quiet: LDFI_URL is ${url}; write http:// or https://`)
    return undefined
  }

  /** The rules in force; the empty lease when the last one has run out. */
  held() {
    const held = this.#held
    return held.lease.rules.length && held.ends > steady() ? held : QUIET
  }

  /** Put a lease in force in place of the current one; nothing happens once stopped. */
  hold(lease, ends) {
    if (this.#stopped) return
    this.allowances.renew(lease.rules)
    this.#held = { lease, ends }
  }

  /** Start polling; does nothing when it has been started already. */
  start() {
    if (this.#started || this.#stopped) return
    this.#started = true
    within(undefined, () => untraced(() => this.#run()))
  }

  /** Stop polling and drop the lease. */
  stop() {
    this.#stopped = true
    this.#held = QUIET
  }

  async #run() {
    let failures = 0
    while (!this.#stopped) {
      const askedAt = steady()
      let wait
      try {
        await this.#ask(askedAt)
        failures = 0
        wait = SHORTEST_SECONDS - (steady() - askedAt)
      } catch (error) {
        failures += 1
        if (failures === 1) process.emitWarning(`fit: no rules from ${this.url}: ${error.message}`)
        wait = backoff(failures)
      }
      await pause(Math.max(0, 1000 * wait), undefined, { ref: false })
    }
  }

  async #ask(askedAt) {
    const report = this.allowances.report()
    const bytes = await this.#fetch(report)
    try {
      this.#answer = understood(bytes, this.#answer)
    } catch (error) {
      this.#held = QUIET // perhaps it said stop
      throw error
    }
    this.allowances.settle(report)
    this.hold(this.#answer.lease, askedAt + this.#answer.lease.seconds)
  }

  #fetch(report) {
    const { lease } = this.#held
    const armed = lease.rules.length ? ARMED_WAIT_SECONDS : WAIT_SECONDS
    const wait = this.allowances.urgent ? 0 : armed
    const said = Object.entries(written(report)).map(([name, value]) => `&${name}=${value}`).join('')
    const query = `version=${encodeURIComponent(lease.version)}&wait=${wait}&edge=${this.edge}${said}`
    return fetched(`${this.url}/api/v1/edge/rules?${query}`, this.token, wait + ANSWER_SECONDS)
  }
}

/** Read an answer; rules that have not changed are not built anew. */
function understood(bytes, known) {
  if (bytes.length > MAX_DOCUMENT) throw new MalformedRules(`rules not understood: over ${MAX_DOCUMENT} bytes`)
  let text
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new MalformedRules(`rules not understood: ${error.message}`)
  }
  return text === known.text ? known : { text, lease: leaseOf(text) }
}

/** Redirects are not followed: the token goes to the control plane and to nobody it might name. */
function fetched(url, token, seconds) {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
  const options = { headers, agent: false, signal: AbortSignal.timeout(1000 * seconds) }
  return new Promise((resolve, reject) => {
    const request = (url.startsWith('https:') ? https : http).get(url, options, (response) => {
      const chunks = []
      let size = 0
      response.on('error', reject).on('data', (chunk) => {
        chunks.push(chunk)
        size += chunk.length
        if (size > MAX_DOCUMENT) finish()
      }).on('end', finish)
      function finish() {
        request.destroy()
        const { statusCode } = response
        if (statusCode >= 200 && statusCode < 300) resolve(Buffer.concat(chunks))
        else reject(new Error(`it answers with ${statusCode}`))
      }
    })
    request.on('socket', (socket) => socket.unref()).on('error', reject)
  })
}

/** Doubles from half a second to ten, less a random part, so that many edges do not come back at once. */
function backoff(failures) {
  const longest = Math.min(LONGEST_RETRY_SECONDS, RETRY_SECONDS * 2 ** Math.min(failures - 1, 10))
  return longest / 2 + (Math.random() * longest) / 2
}
