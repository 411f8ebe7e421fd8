/**
 * undici's dispatchers as injection points: `request`, `stream`, `Pool`, `Client`, `Agent` and its own
 * `fetch`. The point is where a dispatcher takes a request: beneath interceptors and retries.
 */

import net from 'node:net'
import tls from 'node:tls'

import { connector, possible, slowConnector } from './connection.js'
import { agentOfFetch } from './dispatcher.js'
import { found } from './found.js'
import { aimed, fire } from './passage.js'
import { patienceOf } from './patience.js'
import { httpPoint } from './points.js'
import { apart, served } from './request.js'

const HOOKED = Symbol.for('fit.undici')
const PASSED = Symbol('fit.passed')

/**
 * Put the injection point into the application's undici, if it has one, and into Node's, which its
 * `request` calls through as well. Doing it again changes nothing.
 */
export function hookUndici() {
  for (const Agent of [agentOfFetch(), found('undici')?.Agent]) if (Agent) hook(Agent)
}

function hook(Agent) {
  const prototype = ownerOf(Agent.prototype, 'dispatch')
  const original = prototype.dispatch
  if (original[HOOKED]) return
  const dispatch = function dispatch(options, handler) {
    // A proxy's dispatcher calls another, and a pool later, in the name of whoever made room there.
    const foreign = !options || typeof options !== 'object' || /Proxy/.test(this.constructor.name)
    if (foreign || options[PASSED]) return original.call(this, options, handler)
    const call = { ...options, [PASSED]: true }
    if (!served()) return original.call(this, call, handler)
    return struck(Agent, this, call, handler)
      // sockets and retries are everybody's, so they belong to nobody's request
      ?? apart(() => original.call(this, call, handler))
  }
  dispatch[HOOKED] = true
  prototype.dispatch = dispatch
}

function ownerOf(prototype, name) {
  while (!Object.hasOwn(prototype, name)) prototype = Object.getPrototypeOf(prototype)
  return prototype
}

/** What a dispatcher keeps under a symbol of this description. */
function own(dispatcher, description) {
  const symbols = Object.getOwnPropertySymbols(dispatcher)
  return dispatcher[symbols.find((each) => each.description === description)]
}

/** Dispatch a call that is hit over a connection of ours; undefined for one that is not. */
function struck(Agent, dispatcher, call, handler) {
  const origin = call.origin ?? own(dispatcher, 'url')?.origin
  const aim = aimed((name) => pointOf(name, origin, call))
  if (!aim || call.upgrade || !possible(aim.injection.kind, call.method, new URL(origin).hostname)) return undefined
  const options = own(dispatcher, 'options')
  const headersTimeout = options?.headersTimeout ?? own(dispatcher, 'headers timeout')
  const patience = Math.min(call.headersTimeout || headersTimeout || Infinity, patienceOf(call.signal))
  if (aim.injection.kind === 'timeout' && patience > aim.injection.delayMs) return undefined
  const connect = connectorFor(aim, call.method, connectorOf(dispatcher, options))
  if (!connect) return undefined
  const bodyTimeout = options?.bodyTimeout ?? own(dispatcher, 'body timeout')
  const only = new Agent({ connect, headersTimeout, bodyTimeout, keepAliveTimeout: 1 }) // one call, and it is closed
  return only.dispatch({ ...call, origin }, handler)
}

/** What makes the connection of a call that is hit; undefined for one that is not. */
function connectorFor(aim, method, real) {
  if (aim.injection.kind === 'slow') return slowConnector(aim, real)
  const firing = fire(aim)
  return firing && connector(firing, method, real)
}

function pointOf(name, origin, { method, path }) {
  const url = new URL(origin)
  return httpPoint(name, method, url.hostname, url.port ? Number(url.port) : null, path)
}

/** What makes this dispatcher's real connections. */
function connectorOf(dispatcher, options) {
  const connect = own(dispatcher, 'connector') ?? options?.connect
  return typeof connect === 'function' ? connect : plainConnector({ ...options?.tls, ...connect })
}

function plainConnector(chosen) {
  return ({ hostname: host, port, protocol, servername }, done) => {
    const secure = protocol === 'https:'
    const where = { ...chosen, host, port: Number(port || (secure ? 443 : 80)), path: chosen.socketPath }
    const named = { servername: servername || (net.isIP(host) ? undefined : host), ...where }
    const socket = secure ? tls.connect({ ALPNProtocols: ['http/1.1'], ...named }) : net.connect(where)
    socket.once(secure ? 'secureConnect' : 'connect', () => done(null, socket)).once('error', done)
  }
}
