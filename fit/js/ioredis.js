/**
 * ioredis as injection points: single commands.
 *
 * All requests share a client's connection, so it is never touched: a command that is hit is not sent, and
 * its caller sees what the client says of a server in that state, as far as its options let anything be
 * seen: most of what happens to a connection it mends by itself.
 */

import { found } from './found.js'
import { connecting } from './kinds.js'
import { aimed, fire } from './passage.js'
import { commandPoint } from './points.js'
import { SAYS } from './redis.js'
import { served, within } from './request.js'

const HOOKED = Symbol.for('fit.ioredis')
const LOOKED_AT = Symbol('fit.looked-at')
const CLOSED = 'Connection is closed.'
const OFFLINE = "Stream isn't writeable and enableOfflineQueue options is false"

/** Put the injection point into this module's clients. Doing it again changes nothing. */
export function hookIoredis(library) {
  const prototype = (library.Redis ?? library).prototype
  const { sendCommand, connect } = prototype ?? {}
  if (!sendCommand || sendCommand[HOOKED]) return
  prototype.sendCommand = function (command, stream, ...rest) {
    const send = () => sendCommand.call(this, command, stream, ...rest)
    // what is sent through a stream is part of a pipeline; what was seen before is sent again
    if (!served() || stream || command.inTransaction || command[LOOKED_AT]) return send()
    command[LOOKED_AT] = true
    return struck(library, this, command, send) ? command.promise : send()
  }
  prototype.sendCommand[HOOKED] = true
  prototype.connect = function (...given) {
    return served() ? within(undefined, () => connect.apply(this, given)) : connect.apply(this, given)
  }
}

/** Whether a command fails, or goes later. */
function struck(library, { options, status }, command, send) {
  const { host = 'localhost', port = 6379, path } = options
  const aim = aimed((name) => commandPoint(name, command.name, path ?? host, path ? null : port))
  if (!aim || status === 'end' || /subscribe$|^(?:multi|exec|discard|quit)$/i.test(command.name)) return false
  const { kind, delayMs } = aim.injection
  const failure = failureOf(library, options, kind, command)
  const impatient = kind === 'timeout' && options.commandTimeout <= delayMs
  const firing = failure || impatient || kind === 'delay' ? fire(aim) : undefined
  if (!firing) return false
  if (failure) {
    firing.proof.left.then(() => setImmediate(() => { // as an answer comes
      firing.proof.end({ type: failure.name })
      command.reject(failure)
    }))
    return true
  }
  if (typeof options.commandTimeout === 'number') command.setTimeout?.(options.commandTimeout)
  hold(delayMs, command, firing.proof, send)
  return true
}

/** Send a command later; never, where its own timeout is over by then. */
function hold(milliseconds, command, proof, send) {
  const timer = setTimeout(() => {
    proof.end()
    send()
  }, milliseconds)
  command.promise.catch(() => {
    clearTimeout(timer)
    proof.end({ type: 'timeout' })
  })
}

/** What this client says; undefined where nothing would be seen. */
function failureOf(library, options, kind, command) {
  const { host = 'localhost', path } = options
  if (kind === 'error' || connecting(kind, path ? '' : host)) return gone(options)
  if (kind === 'redis:lost' || kind === 'reset') return cut(options)
  if (!Object.hasOwn(SAYS, kind) || options.reconnectOnError) return undefined
  const { name, args } = command
  return Object.assign(new library.ReplyError(SAYS[kind]), { command: { name, args } })
}

/** Of a server that cannot be reached. */
function gone(options) {
  return options.enableOfflineQueue ? cut(options) ?? exhausted(options) : new Error(OFFLINE)
}

/** Of a connection that breaks; most clients make another, and ask again. */
function cut(options) {
  if (typeof options.retryStrategy !== 'function') return new Error(CLOSED)
  return options.maxRetriesPerRequest === 0 ? exhausted(options) : undefined
}

function exhausted({ maxRetriesPerRequest: limit }) {
  const MaxRetriesPerRequestError = found('ioredis/built/errors/MaxRetriesPerRequestError')?.default
  return limit >= 0 && limit !== null && MaxRetriesPerRequestError
    ? new MaxRetriesPerRequestError(limit) : undefined
}
