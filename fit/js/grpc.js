/**
 * @grpc/grpc-js as injection points, calls of all four kinds, and its servers as readers of contexts.
 *
 * The point is where a channel has made a call and the call would look for a connection: beneath
 * interceptors and OpenTelemetry, above retries of the service's configuration. The call's own deadline
 * runs meanwhile, and its own methods end it.
 */

import { AsyncResource } from 'node:async_hooks'

import { unconnected } from './connection.js'
import { readRequest } from './express.js'
import { connecting, recordOf } from './kinds.js'
import { aimed, fire } from './passage.js'
import { rpcPoint } from './points.js'
import { served } from './request.js'

const HOOKED = Symbol.for('fit.grpc')
const SCHEME = /^(?:dns|ipv4|ipv6|passthrough|xds):(?:\/\/[^/]*\/)?/
const DEFAULT_PORT = 443 // whatever the credentials
const TEXT = 'fault injected'

/**
 * Put the injection point into this module's channels, and have handlers serve in the name of their requests. Doing it
 * again changes nothing.
 */
export function hookGrpc({ Channel, Server, status }) {
  const original = Channel.prototype.createCall
  if (original[HOOKED]) return
  Channel.prototype.createCall = function createCall(method, ...rest) {
    const call = original.call(this, method, ...rest)
    if (served()) strikeAtStart(call, this.getTarget(), method, status)
    return call
  }
  Channel.prototype.createCall[HOOKED] = true
  readRequests(Server.prototype)
}

/** Within OpenTelemetry's span of the request; around it where a handler was registered before. */
function readRequests(prototype) {
  const { register, _retrieveHandler: retrieve } = prototype
  const known = new WeakSet()
  prototype.register = function (name, handler, ...rest) {
    const registered = register.call(this, name, reading(handler), ...rest)
    known.add(this.handlers?.get(name) ?? this)
    return registered
  }
  if (!retrieve) return
  prototype._retrieveHandler = function (...given) {
    const found = retrieve.apply(this, given)
    if (!found || known.has(found)) return found
    found.func = reading(found.func)
    known.add(found)
    return found
  }
}

function reading(handler) {
  return (call, callback) => {
    const header = (named) => call.metadata.get(named).join(',')
    const headers = { baggage: header('baggage'), traceparent: header('traceparent') }
    let answered = false
    const answer = callback && ((...given) => {
      answered = true
      callback(...given)
    })
    const isOver = () => Boolean(answered || call.cancelled || call.writableEnded)
    readRequest(headers, [call], isOver, () => handler(call, answer))
  }
}

/** Look at a call when it begins: only then it is known whether it waits for a server to come up. */
function strikeAtStart(call, target, method, status) {
  const peer = target.replace(SCHEME, '')
  const aim = aimed((name) => rpcPoint(name, method, peer))
  if (!aim || typeof call.getConfig !== 'function') return
  call.getConfig = AsyncResource.bind(() => {
    delete call.getConfig
    const firing = able(aim.injection, call, addressOf(peer)) ? fire(aim) : undefined
    if (firing) carryOut(firing, call, target, status)
    else call.getConfig()
  })
}

/** Whether this call can fail in this way natively. */
function able({ kind, delayMs }, call, { host }) {
  if (recordOf(kind).connecting) return connecting(kind, host) && !call.metadata.getOptions().waitForReady
  if (kind === 'timeout') return Number(call.deadline) - Date.now() <= delayMs
  return kind === 'error' || kind === 'delay' || kind.startsWith('grpc:')
}

function carryOut({ injection: { kind, delayMs }, proof }, call, target, status) {
  const end = (code, details) => {
    proof.end({ type: status[code] })
    call.cancelWithStatus(code, details)
  }
  if (kind === 'delay' || kind === 'timeout') {
    const timer = setTimeout(() => {
      proof.end()
      call.getConfig()
    }, delayMs)
    call.statusWatchers.push(({ code }) => { // its deadline is over, or its caller has given up
      clearTimeout(timer)
      proof.end({ type: status[code] })
    })
  } else if (recordOf(kind).connecting) {
    const told = (error) => end(status.UNAVAILABLE, notEstablished(kind, target, error))
    unconnected(kind, addressOf(target.replace(SCHEME, '')), proof, told)
  } else {
    const code = kind === 'error' ? status.UNAVAILABLE : status[kind.slice('grpc:'.length)]
    proof.left.then(() => end(code, TEXT))
  }
}

/** Where a channel would connect to: a port is only what follows a name, or an address in brackets. */
function addressOf(peer) {
  const [, bracketed, name, port] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(peer) ?? [undefined, undefined, peer]
  return { host: bracketed ?? name, port: Number(port ?? DEFAULT_PORT) }
}

/** What a channel says that found nobody; of several addresses the last. */
function notEstablished(kind, target, error) {
  const { message } = error.errors?.at(-1) ?? error
  return recordOf(kind).connecting.node.grpc.replace('{error}', () => message).replace('{target}', () => target)
}
