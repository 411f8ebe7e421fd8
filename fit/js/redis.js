/**
 * node-redis 5 as injection points: single commands, also those of a pool.
 *
 * All requests share a client's connection, so it is never touched: a command that is hit is not sent, and
 * its caller sees what the client says of a connection, or a server, in that state.
 */

import { AsyncResource } from 'node:async_hooks'

import { reset } from './connection.js'
import { connecting } from './kinds.js'
import { aimed, fire } from './passage.js'
import { commandPoint } from './points.js'
import { served, within } from './request.js'

const HOOKED = Symbol.for('fit.redis')
const PORT = 6379

/** What Redis says in a bad state. */
export const SAYS = {
  'redis:loading': 'LOADING Redis is loading the dataset in memory',
  'redis:readonly': "READONLY You can't write against a read only replica.",
}

/** Put the injection point into this module's clients. Doing it again changes nothing. */
export function hookRedis(library) {
  if (!library.createClientPool) return // before 5 there is none, and before 4 who makes a client connects
  const client = ownerOf(library.createClient(), 'sendCommand')
  if (!client || !('_executeCommand' in client) || client.sendCommand[HOOKED]) return
  const { sendCommand, connect } = client
  client.sendCommand = function (words, options) {
    const send = () => sendCommand.call(this, words, options)
    const call = served() && this.isOpen ? struck(library, this.options ?? {}, words, send) : undefined
    return call ?? send()
  }
  client.sendCommand[HOOKED] = true
  client.connect = function (...given) {
    return served() ? within(undefined, () => connect.apply(this, given)) : connect.apply(this, given)
  }
  waitInContext(ownerOf(library.createClientPool(), 'execute'))
}

/** A pool works for who waited for a client in the name of whoever gave it back. */
function waitInContext(pool) {
  if (!pool) return
  const { execute } = pool
  pool.execute = function (work) {
    return execute.call(this, AsyncResource.bind(work))
  }
}

function ownerOf(object, name) {
  while (object && !Object.hasOwn(object, name)) object = Object.getPrototypeOf(object)
  return object
}

/** Have a command fail, or go later; undefined for one to which nothing happens. */
function struck(library, options, words, send) {
  const { host = 'localhost', port = PORT, path } = options.socket ?? {}
  const aim = aimed((name) => commandPoint(name, String(words[0]), path ?? host, path ? null : port))
  if (!aim) return undefined
  const { kind, delayMs } = aim.injection
  const failure = failureOf(library, options, kind)
  if (kind !== 'delay' && !failure) return undefined
  const firing = fire(aim)
  if (!firing) return undefined
  return failure ? failed(failure, firing.proof) : later(delayMs, firing.proof, send)
}

/** What this client says; undefined where it says nothing. */
function failureOf(library, { disableOfflineQueue, socket }, kind) {
  const { ClientOfflineError, SocketClosedUnexpectedlyError } = library
  const { host = 'localhost', path } = socket ?? {}
  const gone = kind === 'error' || connecting(kind, path ? '' : host)
  if (disableOfflineQueue && gone) return new ClientOfflineError()
  if (kind === 'error' || kind === 'redis:lost') return new SocketClosedUnexpectedlyError()
  if (kind === 'reset') return reset()
  return Object.hasOwn(SAYS, kind) ? new library.SimpleError(SAYS[kind]) : undefined
}

async function failed(failure, proof) {
  await proof.left
  await new Promise((resolve) => setImmediate(resolve)) // as an answer comes
  proof.end({ type: failure.code ?? failure.constructor.name })
  throw failure
}

async function later(milliseconds, proof, send) {
  await new Promise((resolve) => setTimeout(resolve, milliseconds))
  proof.end()
  return send()
}
