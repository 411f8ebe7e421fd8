/**
 * The edge: decides once per request which experiment it is in, and stamps it; what fit/edge.py does.
 *
 * A failure context from outside is taken out, unless an engineer has signed it for this very device. A request of
 * an armed class, from a device in one of the experiment's arms, is stamped, as long as the allowance lasts.
 * Whatever fails in here, the request goes on, unstamped.
 */

import { markOf } from './allocation.js'
import { isSeen, markArrival, runWith } from './arrival.js'
import { MAX_HEADER, values, withEntry, without } from './baggage.js'
import { chosen } from './chosen.js'
import { steady } from './clock.js'
import { failureContext, scenarioOf, standsAt } from './express.js'
import { chosenFeatures, featuresOf } from './features.js'
import { LocalHalt } from './halt.js'
import { Devices } from './identity.js'
import { RulesPoll } from './poll.js'
import { carryNothing } from './propagation.js'
import { chosenOf } from './rules.js'
import { signingKeys, verify } from './runtime.js'
import { encode } from './signing.js'

const REMEMBERED = 1000

/** @typedef {{header: string, again: boolean}} Decision */

/** Decides by the rules that `poll` knows; without it, contexts are only taken out. */
export class Edge {
  #signed = { held: undefined, contexts: new Map() }
  #lots = 0

  /** @param {RulesPoll | undefined} poll */
  constructor(poll, environ = process.env) {
    this.poll = poll
    this.halt = new LocalHalt(environ)
    this.devices = new Devices(environ)
    this.told = environ.FIT_FEATURES === undefined ? new Set() : chosen(environ.FIT_FEATURES)
  }

  /**
   * The `baggage` header with which a request goes on, empty for none. `again`: its device was stamped for the
   * same experiment before. Where not even that can be read which came in, nothing of it is left. A promise where
   * the device is asked for; it is kept within 20 ms.
   * @param {string} inbound
   * @param {string} device
   * @param {(wanted: Set<string>) => Map<string, string>} features called only for devices that are claimed
   * @returns {Decision | Promise<Decision>}
   */
  onward(inbound, device, features) {
    const [header, ours] = screened(inbound, device)
    const unstamped = { header, again: false }
    try {
      const stamped = ours ? undefined : this.#stamped(header, device, features)
      if (stamped instanceof Promise) return stamped.then((decision) => decision ?? unstamped, () => unstamped)
      return stamped ?? unstamped
    } catch {
      return unstamped
    }
  }

  #stamped(header, device, features) {
    const { poll } = this
    const keys = signingKeys()
    if (!poll || !keys) return undefined
    poll.start()
    const known = poll.known.rules()
    if (!known.lease.rules.length || !device || this.halt.holds()) return undefined
    const mark = markOf(device)
    const claims = known.lease.claims(mark)
    const [rule, arm] = (claims.length && isSeen() && chosenOf(claims, features(known.lease.wanted))) || []
    if (!rule) return undefined
    const stampedBy = (held) => withEntry(header, this.#stamp(keys, held, rule, arm, device))
    const first = stampedBy(known)
    if (first.length > MAX_HEADER) return undefined // whenever it expires, it is of this length
    const decided = (enrolled) => enrolled && {
      header: enrolled.held === known ? first : stampedBy(enrolled.held), again: enrolled.again,
    }
    const enrolled = poll.enrol(known, { experiment: rule.experiment, arm, mark })
    return enrolled instanceof Promise ? enrolled.then(decided) : decided(enrolled)
  }

  /**
   * Sign once per experiment, arm and lease; once per request only where lengths are drawn. A context expires by
   * the wall clock, for it is read on other machines; what is left of the lease is measured by the steady one.
   * It holds for longer than the lease where the rule asks for that.
   */
  #stamp(keys, held, rule, arm, device) {
    const { experiment, faults, delayMs, salt } = rule
    const expires = Math.ceil(Date.now() / 1000 + Math.max(held.ends - steady(), rule.patience))
    const what = { experiment, arm, expires, faults, delayMs }
    if (rule.draws) return encode(keys, { ...what, lot: `${salt}\n${device}\n${this.#lots++}` })
    if (this.#signed.held !== held || this.#signed.contexts.size >= REMEMBERED) {
      this.#signed = { held, contexts: new Map() }
    }
    const { contexts } = this.#signed
    const key = [experiment, arm, expires, keys.signingId].join(' ')
    if (!contexts.has(key)) contexts.set(key, encode(keys, what))
    return contexts.get(key)
  }
}

/** The header less what is foreign, and whether a scenario of this very device is left in it. */
function screened(inbound, device) {
  const found = values(inbound)
  if (!found.length) return [inbound, false]
  const cleaned = without(inbound)
  const ours = found.find((each) => admits(verify(each), device))
  return ours ? [withEntry(cleaned, ours), true] : [cleaned, false]
}

function admits(context, device) {
  return Boolean(context && device && context.experiment === scenarioOf(device))
}

/**
 * Middleware of an edge.
 * @param {() => Edge} edgeOf
 */
export function standing(edgeOf) {
  return (request, response, next) => {
    let edge
    let decided
    try {
      edge = edgeOf()
      decided = decisionOn(edge, request)
    } catch {
      decided = undefined
    }
    const goOn = (decision) => {
      try {
        carryNothing() // unless the reader finds something in what is left
        cleanHandshakes(standsAt(request), edge)
        admit(edge, request, decision)
      } catch {
        replace(request, '')
      }
      // what was read before is forgotten
      runWith(request.headers.baggage ?? '', () => failureContext(request, response, next))
    }
    if (decided instanceof Promise) decided.then((decision) => process.nextTick(goOn, decision)) // it may throw
    else goOn(decided)
  }
}

/** @type {Edge | undefined} */
let own

/**
 * For a Node service that is itself the edge, before everything that reads baggage. Where the rules come from:
 * LDFI_URL and LDFI_TOKEN; without them contexts from outside are taken out and nothing is stamped.
 */
export const edge = standing(() => (own ??= new Edge(RulesPoll.fromEnvironment())))

function decisionOn(edge, request) {
  cleanTrailers(request)
  const { baggage: inbound = '' } = request.headers
  return edge.onward(inbound, deviceOf(edge, request), (wanted) => featuresOf(described(request), wanted))
}

function deviceOf(edge, request) {
  try {
    return edge.devices.of((name) => valuesOf(request, name), request.socket?.remoteAddress ?? '')
  } catch {
    return '' // nobody knows
  }
}

/** The values of all headers of a name: Node joins some of them by itself. */
function valuesOf({ headers, rawHeaders = [] }, name) {
  const found = rawHeaders.filter((_, at) => at % 2 && rawHeaders[at - 1].toLowerCase() === name)
  return found.length || !(name in headers) ? found : [String(headers[name])]
}

function admit(edge, request, { header, again }) {
  if (header !== (request.headers.baggage ?? '')) replace(request, header)
  if (signingKeys()) {
    markArrival(edge.told.size ? chosenFeatures(Object.entries(request.headers), edge.told) : [], again)
  }
}

/** What a request says of itself: its path as it was sent, for classes are learned from that. */
function described({ method, url, originalUrl = url, headers }) {
  const target = originalUrl.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  const [path] = target.split(/[?#]/, 1)
  const [query] = target.slice(path.length).replace(/^\?/, '').split('#', 1)
  return { method, path: path || '/', query, headers: Object.entries(headers) }
}

/**
 * Have the trailers come without an entry of ours: a proxy may send them on. Their number stays, by which Node reads
 * them.
 */
function cleanTrailers(request) {
  const clean = (raw) => {
    for (let at = 0; at < raw.length; at += 2) {
      if (raw[at].toLowerCase() === 'baggage') raw[at + 1] = without(raw[at + 1])
    }
  }
  if (request.httpVersionMajor === 2) {
    request.stream.once('trailers', () => {
      clean(request.rawTrailers)
      if (request.trailers.baggage) request.trailers.baggage = without(String(request.trailers.baggage))
    })
  } else if ('transfer-encoding' in request.headers) {
    let raw = request.rawTrailers
    clean(raw)
    const set = (lines) => clean(raw = lines)
    Object.defineProperty(request, 'rawTrailers', { configurable: true, enumerable: true, get: () => raw, set })
  }
}

/** Have handshakes (WebSocket) come to a server without a context from outside: no middleware sees them. */
function cleanHandshakes(server, edge) {
  if (!server) return
  const { emit } = server
  server.emit = function (event, request, ...given) {
    if (event === 'upgrade' || event === 'connect') {
      const { baggage: inbound = '' } = request.headers
      const [header] = screened(inbound, deviceOf(edge, request))
      if (header !== inbound) replace(request, header)
    }
    return emit.call(this, event, request, ...given)
  }
}

function replace(request, header) {
  const { headers, headersDistinct } = request // Node makes the latter of the raw ones, when it is first read
  for (const [all, value] of [[headers, header], [headersDistinct ?? {}, [header]]]) {
    if (header) all.baggage = value
    else delete all.baggage
  }
  if (header && headers.connection) headers.connection = spared(headers.connection)
  const raw = request.rawHeaders ?? []
  const kept = []
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at].toLowerCase()
    if (name !== 'baggage') kept.push(raw[at], header && name === 'connection' ? spared(raw[at + 1]) : raw[at + 1])
  }
  if (header) kept.push('baggage', header)
  raw.splice(0, raw.length, ...kept)
}

/** What Connection lists less baggage: a proxy further in would take it out, and clients do not decide on that. */
function spared(connection) {
  const kept = connection.split(',').filter((name) => name.trim().toLowerCase() !== 'baggage')
  return kept.join(',')
}
