/**
 * A connection in place of the dependency's. Node's own client, or undici's, reads what it says, so its
 * callers see what they see when that really happens.
 */

import { AsyncResource } from 'node:async_hooks'
import { lookup as dnsLookup } from 'node:dns'
import net from 'node:net'
import { constants } from 'node:os'

import { isAnswer, lacksBody, statusOf, wire } from './answers.js'
import { connecting, recordOf } from './kinds.js'
import { fire } from './passage.js'
import { Drip } from './slow.js'
import { Connection, SecureConnection } from './socket.js'

/** Between an answer and the end of the connection that cuts it: a moment, as over a network. */
const BETWEEN = 5 // milliseconds

/**
 * Those that undici has. Of a socket the system knows, of ours nobody: were one collected before it is closed, the
 * timer of undici that closes it would find nothing, and end the process.
 * @type {Set<Connection>}
 */
const open = new Set()

/** Whether a call of HTTP can fail in this way at all; of a `timeout` the caller's patience decides. */
export function possible(kind, method, host) {
  const bodiless = method === 'HEAD' && (kind === 'slow' || lacksBody(kind))
  if (method === 'CONNECT' || bodiless) return false
  return ['delay', 'timeout', 'reset', 'slow'].includes(kind) || isAnswer(kind) || connecting(kind, host)
}

/**
 * A connection of ours, in place of one of TLS where that is `secure`.
 * @param {(connection: Connection) => void} begun @param {boolean} secure
 */
export function standIn(begun, secure) {
  return secure ? new SecureConnection(begun) : new Connection(begun)
}

/**
 * What a fault does to a connection as soon as the request has come.
 * @param {import('./passage.js').Firing} firing
 * @param {string} method
 * @param {(connection: Connection) => void} release make the real connection, and join it
 * @returns {(connection: Connection) => void}
 */
export function act({ injection: { kind, delayMs }, proof }, method, release) {
  if (recordOf(kind).connecting) return () => {} // it never comes
  if (kind === 'reset') {
    return (connection) => proof.left.then(() => {
      proof.end({ type: 'ECONNRESET' })
      connection.destroy(reset())
    })
  }
  if (kind === 'delay' || kind === 'timeout') {
    return (connection) => hold(connection, delayMs, proof, release)
  }
  return (connection) => proof.left.then(() => {
    proof.end(ending(kind))
    const { bytes, cut } = wire(kind, method)
    connection.answer(bytes, () => {
      if (cut) setTimeout(() => connection.push(null), BETWEEN) // the head is read before the end
    })
  })
}

/**
 * What a connection does whose answer's body is to come slowly: it is the dependency's, from the beginning.
 * Whether there is a body is known when the headers have come, so nothing is claimed until then.
 * @param {import('./passage.js').Aim} aim
 * @param {(connection: Connection) => void} release make the real connection, and join it
 * @returns {(connection: Connection) => void}
 */
export function slowed(aim, release) {
  const strikes = AsyncResource.bind(() => {
    const firing = fire(aim)
    firing?.proof.end()
    return firing !== undefined
  })
  return (connection) => {
    connection.drip = new Drip(aim.injection.delayMs, strikes)
    release(connection)
  }
}

/** A connector as undici takes it, for a call the body of whose answer is to come slowly. */
export function slowConnector(aim, real) {
  return (options, done) => {
    const release = (connection) => real(options, (error, socket) => connection.join(error, socket))
    offer(slowed(aim, release), options, done, () => {})
  }
}

/** Hand undici a connection of ours. */
function offer(begun, { protocol }, done, over) {
  const connection = standIn(begun, protocol === 'https:')
  open.add(connection)
  connection.once('close', () => {
    open.delete(connection)
    over()
  })
  process.nextTick(done, null, connection)
}

/**
 * A connector as undici takes it, which makes the one connection of a call that is hit.
 * @param {import('./passage.js').Firing} firing
 * @param {string} method
 * @param {(options: object, done: Function) => void} [real] undici's own, for what is released
 */
export function connector(firing, method, real) {
  return (options, done) => {
    const secure = options.protocol === 'https:'
    const { hostname: host, port } = options
    const { kind } = firing.injection
    if (recordOf(kind).connecting) {
      unconnected(kind, { host, port: Number(port || (secure ? 443 : 80)) }, firing.proof, (error) => {
        firing.proof.end({ type: error.code })
        done(error, null)
      })
      return
    }
    const release = (connection) => real(options, (error, socket) => connection.join(error, socket))
    offer(act(firing, method, release), options, done, () => firing.proof.end({ type: 'aborted' }))
  }
}

/** How a call ends that is answered in this way, for its proof. */
function ending(kind) {
  const status = statusOf(kind)
  return status < 400 ? undefined : { status, type: String(status) }
}

function hold(connection, milliseconds, proof, release) {
  const timer = setTimeout(() => {
    proof.end()
    release(connection)
  }, milliseconds)
  connection.prependOnceListener('close', () => {
    clearTimeout(timer)
    proof.end({ type: 'timeout' })
  })
}

/** What a client's socket says when the other end tears the connection down. */
export function reset() {
  const errno = -constants.errno.ECONNRESET
  return Object.assign(new Error('read ECONNRESET'), { errno, code: 'ECONNRESET', syscall: 'read' })
}

/**
 * Hand `done` the error of a connection that cannot be made: where nobody listens of each address that the
 * name has, where Node would have tried them all. Not before its mark has left this process.
 * @param {string} kind
 * @param {{host: string, port: number, lookup?: Function, family?: number,
 *   autoSelectFamily?: boolean}} target
 * @param {import('./proof.js').Proof} proof
 * @param {(error: Error) => void} done
 */
export function unconnected(kind, target, { left }, done) {
  const now = recordOf(kind).named ? unresolved : atAddresses
  left.then(() => setImmediate(now, kind, target, done)) // what done throws is the caller's, and no rejection
}

/** What Node's own lookup says of a name that nobody has. */
function unresolved(kind, { host }, done) {
  done(failureOf(kind, '{host}', host, { hostname: host }))
}

function atAddresses(kind, { host, port, lookup = dnsLookup, family, autoSelectFamily }, done) {
  const at = (address) => failureOf(kind, '{address}', `${address}:${port}`, { address, port })
  if (net.isIP(host)) return void done(at(host))
  const all = Boolean(autoSelectFamily ?? net.getDefaultAutoSelectFamily?.())
  lookup(host, { all, family: family ?? 0, hints: 0 }, (error, found) => {
    if (error) return done(at(host))
    const errors = (all ? found : [{ address: found }]).map(({ address }) => at(address))
    if (errors.length === 1) return done(errors[0])
    return done(Object.assign(new AggregateError(errors), { code: errors[0].code }))
  })
}

/** What Node says of where a call was to go, as `kinds.json` has it. */
function failureOf(kind, where, called, fields) {
  const { code, syscall, errno, number = -constants.errno[errno], text } = recordOf(kind).connecting.node
  return Object.assign(new Error(text.replace(where, () => called)), { errno: number, code, syscall, ...fields })
}
