/**
 * What a client takes for its connection to the dependency. Of itself it knows nothing: not where it
 * leads, and not who vouches for the other end. Once it is joined with the dependency's connection, it
 * says what that one says.
 */

import net from 'node:net'
import tls from 'node:tls'

const REAL = Symbol('fit.real')
const WHERE = [
  'remoteAddress', 'remoteFamily', 'remotePort', 'localAddress', 'localFamily', 'localPort',
  'bytesRead', 'bytesWritten',
]
const WHO = { authorized: false, authorizationError: null, alpnProtocol: null, servername: null, secureConnecting: true }
const EMPTY = new Set(['getPeerCertificate', 'getCertificate', 'getCipher', 'getEphemeralKeyInfo'])
/** What callers wait for on a socket, some to turn the dependency away. */
const TOLD = ['lookup', 'secureConnect', 'OCSPResponse', 'session', 'keylog']

/**
 * `begun` is called once, as soon as the request comes. Until it is known what becomes of the request,
 * its first piece is kept for the dependency, and the writer waits with what follows.
 */
export class Connection extends net.Socket {
  #begun
  #held
  #answered = false
  #heard = {}
  #kept = true;
  [REAL] = undefined
  /** @type {import('./slow.js').Drip | undefined} through which what the dependency says comes, if through any */
  drip = undefined

  /** @param {(connection: Connection) => void} begun */
  constructor(begun) {
    super()
    this.#begun = begun
    this._writev = null
    this.once('free', () => this.#giveBack())
    this.once('agentRemove', () => this[REAL]?.emit('agentRemove'))
  }

  /** Come up, as a new connection does after its caller has seen it. */
  comeUp() {
    setImmediate(() => {
      if (this.destroyed) return
      this.connecting = false
      this.emit('connect')
      this.emit('ready')
    })
  }

  get pending() {
    return this.connecting
  }

  address() {
    return this[REAL]?.address() ?? {}
  }

  _read() {
    if (this.#kept && !this.drip?.holding) this[REAL]?.resume()
  }

  _write(chunk, encoding, done) {
    if (this.#answered) return void done()
    if (this[REAL]) return void this.#pass(chunk, encoding, done)
    this.#held = [chunk, encoding, done]
    const begun = this.#begun
    this.#begun = undefined
    if (begun) setImmediate(begun, this)
    return undefined
  }

  _final(done) {
    if (this[REAL] && this.#kept) this[REAL].end(done)
    else done()
  }

  _destroy(error, done) {
    if (this.#kept) this[REAL]?.destroy()
    this.drip?.stop()
    this.#held?.[2]()
    this.#held = undefined
    super._destroy(error, done)
  }

  /** Once there is an answer nobody reads on, and Node's client no longer tells its writer to go on. */
  write(...given) {
    return super.write(...given) || this.#answered
  }

  /** Answer, then call `done`: as a dependency does that takes all that the caller sends. */
  answer(bytes, done) {
    const tell = () => {
      this.push(bytes)
      done()
    }
    this.#answered = true
    this.#held?.[2]()
    this.#held = undefined
    if (this.writableNeedDrain) this.once('drain', tell) // the writer first
    else tell()
  }

  /** Become the dependency's connection: what was held goes there, and what it says comes here. */
  join(error, real) {
    if (error || this.destroyed) {
      real?.destroy()
      this.destroy(error)
      return
    }
    this[REAL] = real
    this.#hear(real)
    if (real.encrypted && !real.secureConnecting) this.emit('secureConnect') // it was so before
    if (this.destroyed || !this.#held) return
    const held = this.#held
    this.#held = undefined
    this.#pass(...held)
  }

  #hear(real) {
    let ended = false
    for (const event of TOLD) this.#heard[event] = (...given) => this.emit(event, ...given)
    Object.assign(this.#heard, {
      data: (chunk) => {
        const pass = (bytes) => this.#say(bytes, real)
        if (!this.drip) return void pass(chunk)
        this.drip.take(chunk, pass)
        if (this.drip.holding) real.pause()
        return undefined
      },
      end: () => {
        ended = true
        this.#afterwards(() => this.push(null))
      },
      error: (failed) => this.destroy(failed),
      timeout: () => this.timeout || this.emit('timeout'), // the agent's own
      close: () => ended || this.#afterwards(() => this.destroy()),
    })
    for (const [event, listener] of Object.entries(this.#heard)) real.on(event, listener)
  }

  /** Pass on what the dependency says. */
  #say(bytes, real) {
    this.#stir()
    if (!this.push(bytes) || this.drip?.holding) real.pause()
    else real.resume()
  }

  #afterwards(what) {
    if (this.drip) this.drip.afterwards(what)
    else what()
  }

  #pass(chunk, encoding, done) {
    this.#stir()
    this[REAL].write(chunk, encoding, (error) => {
      this.#stir()
      done(error)
    })
  }

  /** It is not idle. */
  #stir() {
    if (this.timeout) this.setTimeout(this.timeout)
  }

  /** The call is over: its agent may use the dependency's connection for others. */
  #giveBack() {
    const real = this[REAL]
    if (real && !this.destroyed && !real.destroyed) {
      this.#kept = false
      for (const [event, listener] of Object.entries(this.#heard)) real.off(event, listener)
      real.resume()
      real.emit('free')
    }
    this.destroy()
  }
}

/** The same in place of a connection of TLS. */
export class SecureConnection extends Connection {
  encrypted = true
}

for (const name of WHERE) tell(Connection.prototype, name, undefined)
for (const [name, before] of Object.entries(WHO)) tell(SecureConnection.prototype, name, before)
for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(tls.TLSSocket.prototype))) {
  if (typeof value !== 'function' || name.startsWith('_') || name in net.Socket.prototype) continue
  SecureConnection.prototype[name] = function asked(...given) {
    if (this[REAL]) return this[REAL][name]?.(...given)
    return EMPTY.has(name) ? {} : null
  }
}

function tell(prototype, name, before) {
  const get = function get() {
    return this[REAL] ? this[REAL][name] : before
  }
  Object.defineProperty(prototype, name, { configurable: true, get })
}
