/**
 * The edge's line to the control plane, beside the requests, as fit/poll.py does it.
 *
 * A stream tells which rules there are. What lets the edge act on them is a lease, which it fetches by a long poll,
 * and only while it has devices enrolled or may enrol some; by the same it reports how many. While the line is down it
 * tries again, ever more slowly, and the lease that it holds runs out by itself. A control plane that knows no streams
 * answers with a lease instead of one, and so it is polled without end. It keeps no process alive.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'

import { Allowances, written } from './allowance.js'
import { untraced } from './arrival.js'
import { Asks } from './asks.js'
import { steady } from './clock.js'
import { Devices } from './identity.js'
import { Known } from './known.js'
import { eventsOf, opened, textOf } from './line.js'
import { within } from './request.js'
import { Lease, leaseOf, MalformedRules } from './rules.js'

const WAIT_SECONDS = 2
const ARMED_WAIT_SECONDS = 1
const SHORTEST_SECONDS = 0.1 // from one question to the next
const RETRY_SECONDS = 0.5
const LONGEST_RETRY_SECONDS = 10
const ANSWER_SECONDS = 5 // how much later than asked for an answer may come
const SILENT_SECONDS = 25 // of a stream: it says something every ten

const STREAM = 'text/event-stream'
const LEASE = 'application/json'

/** Holds the rules and the allowances. */
export class RulesPoll {
  allowances = new Allowances()
  known = new Known(this.allowances)
  edge = randomBytes(8).toString('hex')
  #started = false
  #stopping = new AbortController()
  #older = false // the control plane knows no streams
  #tell = () => {}

  /** @param {string} url the service's @param {string} token */
  constructor(url, token) {
    this.url = url.replace(/\/+$/, '')
    this.token = token
    this.devices = new Devices().kinds
    this.asks = new Asks(this, () => this.#tell())
  }

  /** A poll of LDFI_URL and LDFI_TOKEN; undefined where either is missing or no HTTP URL. */
  static fromEnvironment({ LDFI_URL: url, LDFI_TOKEN: token } = process.env) {
    if (!url || !token) return undefined
    if (/^https?:\/\//.test(url) && URL.canParse(url)) return new RulesPoll(url, token)
    process.emitWarning(`fit: the edge stays quiet: LDFI_URL is ${url}; write http:// or https://`)
    return undefined
  }

  /**
   * By which lease a device may be stamped, and whether it was enrolled before; undefined where it may not be. A
   * promise where the edge's own allowance is used up, and so the device is asked for.
   * @param {import('./known.js').Held} held
   * @param {import('./asks.js').Whom} whom
   * @returns {import('./asks.js').Enrolled | undefined | Promise<import('./asks.js').Enrolled | undefined>}
   */
  enrol(held, whom) {
    const { experiment, arm, mark } = whom
    const { allowances } = this
    if (held.lease.asks && allowances.usedUp(experiment, arm, mark)) return this.asks.enrol(held.lease.version, whom)
    if (held.ends <= steady()) return undefined
    const again = allowances.knows(experiment, arm, mark)
    return allowances.admit(experiment, arm, mark) ? { held, again } : undefined
  }

  /** Start listening and polling; does nothing when it has been started already. */
  start() {
    if (this.#started || this.#stopped) return
    this.#started = true
    within(undefined, () => untraced(() => {
      this.#repeat(reading((read) => this.#listen(read)))
      this.#repeat(reading((read) => this.#renew(read)))
    }))
  }

  /** Stop both and drop the lease. */
  stop() {
    this.#stopping.abort()
    this.known.close()
  }

  get #stopped() {
    return this.#stopping.signal.aborted
  }

  async #repeat(question) {
    let failures = 0
    while (!this.#stopped) {
      let wait = SHORTEST_SECONDS
      const began = steady()
      try {
        await question()
        failures = 0
      } catch (error) {
        // a stream that was held for long and breaks is the first failure, not one more
        failures = steady() - began > LONGEST_RETRY_SECONDS ? 1 : failures + 1
        if (failures === 1 && !this.#stopped) process.emitWarning(`fit: no rules from ${this.url}: ${error.message}`)
        wait = backoff(failures)
      }
      await pause(1000 * wait, undefined, { ref: false })
    }
  }

  /** Open a stream, and follow it until it ends. A control plane that knows none answers with a lease. */
  async #listen(read) {
    const askedAt = steady()
    const report = this.allowances.report()
    try {
      await patiently(this.#wait + ANSWER_SECONDS, this.#stopping.signal, async (signal, goOn) => {
        const answer = await this.#question(`${STREAM}, ${LEASE};q=0.9`, report, signal)
        this.#older = !answer.headers['content-type']?.startsWith(STREAM)
        if (this.#older) {
          this.known.withdraw()
          this.#hold(read(await textOf(answer)), askedAt, report)
        } else {
          this.#tell()
          await this.#follow(watched(answer, () => goOn(SILENT_SECONDS)))
        }
      })
    } catch (error) {
      if (error instanceof MalformedRules) this.known.silence() // perhaps it said stop
      else this.known.withdraw()
      throw error
    }
  }

  /** Take over the rules of each event. A stream that ends in good order is none that has failed. */
  async #follow(stream) {
    let told = false
    for await (const event of eventsOf(stream)) {
      if (event) {
        this.known.offer(leaseOf(event))
        this.#tell()
        told = true
      } else if (told && !this.known.latest.streamed) {
        throw new Error('the stream tells of another epoch than the lease')
      }
    }
    if (!told) throw new Error('the stream says nothing')
  }

  /** Wait until there is something to poll for, and fetch a lease. */
  async #renew(read) {
    while (!this.#due) {
      await new Promise((resolve) => {
        this.#tell = resolve
      })
    }
    const askedAt = steady()
    const report = this.allowances.report()
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(1000 * (this.#wait + ANSWER_SECONDS))])
    const { asked, late } = report
    const answer = await textOf(await this.#question(LEASE, report, signal, { asked, late }))
    let lease
    try {
      lease = read(answer)
    } catch (error) {
      this.known.lapse() // perhaps it said stop
      throw error
    }
    this.#hold(lease, askedAt, report)
  }

  /** Whether the edge has something to keep or to tell, and nobody else asks for leases. */
  get #due() {
    return !this.#older && (this.known.rules().lease.allots || this.allowances.news)
  }

  #hold(lease, askedAt, report) {
    this.allowances.settle(report)
    this.known.hold(lease, askedAt + lease.seconds)
  }

  /** For how many seconds an answer may wait for other rules. */
  get #wait() {
    if (this.allowances.urgent) return 0
    return this.known.latest.lease.rules.length ? ARMED_WAIT_SECONDS : WAIT_SECONDS
  }

  /**
   * Ask for rules, and report. A control plane that knows no streams refuses parameters that it does not know, so
   * `more` is only for one that does.
   */
  #question(accept, { counts }, signal, more = {}) {
    const { version, asks } = this.known.latest.lease
    const said = { ...written(counts), ...(asks && { wants: '' }), ...more } // who is wanted is asked for
    const words = Object.entries(said).map(([name, value]) => `&${name}=${value}`).join('')
    const query = `version=${encodeURIComponent(version)}&wait=${this.#wait}&edge=${this.edge}${words}`
    return opened(`${this.url}/api/v1/edge/rules?${query}`, { token: this.token, accept, signal, devices: this.devices })
  }
}

/** A question with a reader of its answers; rules that have not changed are not built anew. */
function reading(question) {
  let known = { text: '', lease: new Lease() }
  return () => question((text) => {
    if (text !== known.text) known = { text, lease: leaseOf(text) }
    return known.lease
  })
}

/** Do work that is broken off when it takes longer than so many seconds, from when it was last said so. */
async function patiently(seconds, stopping, work) {
  const over = new AbortController()
  let timer
  const goOn = (more) => {
    clearTimeout(timer)
    timer = setTimeout(() => over.abort(new Error('nothing comes')), 1000 * more).unref()
  }
  goOn(seconds)
  try {
    await work(AbortSignal.any([stopping, over.signal]), goOn)
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}

async function* watched(stream, heard) {
  heard()
  for await (const chunk of stream) {
    heard()
    yield chunk
  }
}

/** Doubles from half a second to ten, less a random part, so that many edges do not come back at once. */
function backoff(failures) {
  const longest = Math.min(LONGEST_RETRY_SECONDS, RETRY_SECONDS * 2 ** Math.min(failures - 1, 10))
  return longest / 2 + (Math.random() * longest) / 2
}
