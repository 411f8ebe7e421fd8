/**
 * A connection in place of the dependency's. Node's own client, or undici's, reads what it says, so its
 * callers see what they see when that really happens.
 */

import { lookup as dnsLookup } from 'node:dns'
import net from 'node:net'
import { constants } from 'node:os'

import { isAnswer, lacksBody, statusOf, wire } from './answers.js'

/** Between an answer and the end of the connection that cuts it: a moment, as over a network. */
const BETWEEN = 5 // milliseconds

/** Whether a call of HTTP can fail in this way at all; of a `timeout` the caller's patience decides. */
export function possible(kind, method) {
  if (method === 'CONNECT' || (method === 'HEAD' && lacksBody(kind))) return false
  return ['delay', 'timeout', 'refused', 'reset'].includes(kind) || isAnswer(kind)
}

/**
 * What Node's client takes for a socket. `begun` is called once, as soon as the request comes; until it
 * is known what becomes of the request, what is written is kept for the dependency.
 */
export class Connection extends net.Socket {
  #begun
  #real
  #kept = []

  /** @param {(connection: Connection) => void} begun @param {boolean} secure */
  constructor(begun, secure) {
    super()
    this.#begun = begun
    this._writev = null
    if (secure) Object.assign(this, { encrypted: true, authorized: true })
    this.once('free', () => this.destroy()) // no pool takes it
  }

  /** What the caller of https asks of its socket. */
  getPeerCertificate() {
    return {}
  }

  _read() {
    this.#real?.resume()
  }

  _write(chunk, encoding, done) {
    if (this.#real) {
      this.#real.write(chunk, encoding, done)
      return
    }
    this.#kept?.push(chunk)
    done()
    const begun = this.#begun
    this.#begun = undefined
    if (begun) setImmediate(begun, this)
  }

  _final(done) {
    if (this.#real) this.#real.end(done)
    else done()
  }

  _destroy(error, done) {
    this.#real?.destroy()
    super._destroy(error, done)
  }

  /** Answer. The connection stays open, unless the answer is cut. */
  answer({ bytes, cut }) {
    this.#kept = undefined
    this.push(bytes)
    if (cut) setTimeout(() => this.push(null), BETWEEN) // the head is read before the end
  }

  /** Become the dependency's connection: what was kept goes there, and what it says comes here. */
  join(error, real) {
    if (error || this.destroyed) {
      real?.destroy()
      this.destroy(error)
      return
    }
    let ended = false
    this.#real = real
    for (const chunk of this.#kept) real.write(chunk)
    this.#kept = undefined
    real.on('data', (chunk) => {
      if (this.timeout) this.setTimeout(this.timeout) // it is not idle
      if (!this.push(chunk)) real.pause()
    })
    real.on('end', () => {
      ended = true
      this.push(null)
    })
    real.on('error', (failed) => this.destroy(failed))
    real.on('close', () => ended || this.destroy())
  }
}

/**
 * What a fault does to a connection as soon as the request has come.
 * @param {import('./passage.js').Firing} firing
 * @param {string} method
 * @param {(connection: Connection) => void} release make the real connection, and join it
 * @returns {(connection: Connection) => void}
 */
export function act({ injection: { kind, delayMs }, proof }, method, release) {
  if (kind === 'refused') return () => {} // it never comes
  if (kind === 'reset') {
    return (connection) => {
      proof.end({ type: 'ECONNRESET' })
      connection.destroy(reset())
    }
  }
  if (kind === 'delay' || kind === 'timeout') {
    return (connection) => hold(connection, delayMs, proof, release)
  }
  return (connection) => {
    proof.end(ending(kind))
    connection.answer(wire(kind, method))
  }
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
    if (firing.injection.kind === 'refused') {
      refused({ host, port: Number(port || (secure ? 443 : 80)) }, (error) => {
        firing.proof.end({ type: error.code })
        done(error, null)
      })
      return
    }
    const release = (connection) => real(options, (error, socket) => connection.join(error, socket))
    const connection = new Connection(act(firing, method, release), secure)
    connection.once('close', () => firing.proof.end({ type: 'aborted' }))
    process.nextTick(done, null, connection)
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
 * Hand `done` the error of a connection where nobody listens: of each address that the name has, where
 * Node would have tried them all.
 * @param {{host: string, port: number, lookup?: Function, family?: number,
 *   autoSelectFamily?: boolean}} target
 * @param {(error: Error) => void} done
 */
export function refused({ host, port, lookup = dnsLookup, family, autoSelectFamily }, done) {
  if (net.isIP(host)) return void done(refusedAt(host, port))
  const all = Boolean(autoSelectFamily ?? net.getDefaultAutoSelectFamily?.())
  lookup(host, { all, family: family ?? 0, hints: 0 }, (error, found) => {
    if (error) return done(refusedAt(host, port))
    const errors = (all ? found : [{ address: found }]).map((at) => refusedAt(at.address, port))
    if (errors.length === 1) return done(errors[0])
    return done(Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' }))
  })
}

function refusedAt(address, port) {
  return Object.assign(new Error(`connect ECONNREFUSED ${address}:${port}`), {
    errno: -constants.errno.ECONNREFUSED,
    code: 'ECONNREFUSED',
    syscall: 'connect',
    address,
    port,
  })
}
