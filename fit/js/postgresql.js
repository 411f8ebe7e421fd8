/**
 * pg (node-postgres) as injection points: statements, also those of its pool, and connections that are
 * opened.
 *
 * The point of a statement is where a client takes it into its queue, beneath OpenTelemetry's
 * instrumentation; what happens there happens when its turn comes, so no statement overtakes another.
 * What the server would say is said by the server: it executes a statement that raises the error in place
 * of the caller's, so the error is whole and the transaction is aborted as it is when that happens.
 */

import { AsyncResource } from 'node:async_hooks'

import { reset, unconnected } from './connection.js'
import { connecting } from './kinds.js'
import { aimed, fire } from './passage.js'
import { connectPoint, databasePoint, templateWords, verbOf } from './points.js'
import { served, within } from './request.js'

const HOOKED = Symbol.for('fit.postgresql')
const LOOKED_AT = Symbol('fit.looked-at')
const LOST = 'Connection terminated unexpectedly'

/** Kind → SQLSTATE and message, as fit/clients/postgresql.py has them. */
const STATES = {
  'sql:deadlock': ['40P01', () => 'deadlock detected'],
  'sql:serialization': ['40001', () => 'could not serialize access due to concurrent update'],
  'sql:readonly': ['25006', (verb) => `cannot execute ${verb} in a read-only transaction`],
}
const END_ME = 'SELECT pg_terminate_backend(pg_backend_pid())'

/** Put the injection points into this module's clients. Doing it again changes nothing. */
export function hookPostgresql({ Client, Pool }) {
  const { _connect, _pulseQueryQueue } = Client?.prototype ?? {}
  const native = !Client?.prototype._attachListeners // libpq's client has no connection of its own
  if (native || !_connect || !_pulseQueryQueue || _connect[HOOKED]) return
  Client.prototype._connect = function (callback) {
    if (!served()) return _connect.call(this, callback)
    strikeConnection(this)
    // what happens on a socket happens in the name of whoever opened it, and it is everybody's
    return within(undefined, () => _connect.call(this, callback && AsyncResource.bind(callback)))
  }
  Client.prototype._connect[HOOKED] = true
  Client.prototype._pulseQueryQueue = function () {
    const statement = this._queryQueue.at(-1)
    if (statement && !statement[LOOKED_AT]) lookAt(this, statement)
    return _pulseQueryQueue.call(this)
  }
  if (Pool) waitInContext(Pool.prototype)
}

/** A pool calls who waited for a connection in the name of whoever gave it back. */
function waitInContext(prototype) {
  const { connect } = prototype
  prototype.connect = function (callback) {
    return connect.call(this, callback && AsyncResource.bind(callback))
  }
}

/** Look at a statement while its caller is still known; it has just been put into the queue. */
function lookAt(client, statement) {
  statement[LOOKED_AT] = true
  if (!served()) return
  if (statement.callback) statement.callback = AsyncResource.bind(statement.callback)
  const aim = aimed((name) => statementPoint(name, statement.text, client.database))
  const firing = aim && able(aim.injection, client, statement) ? fire(aim) : undefined
  if (firing) strikeStatement(firing, client, statement)
}

function statementPoint(name, text, database) {
  return databasePoint(name, text, peerOf(database))
}

/** The database; where it has no name of its own, what it is. */
function peerOf(database) {
  const named = templateWords(database ?? '')
  return /[^*]/.test(named) ? named : 'postgresql'
}

/** Whether this statement can fail in this way natively. Cursors and pipelines cannot. */
function able({ kind, delayMs }, client, { text, prepare }) {
  if (client.pipeline || typeof text !== 'string' || typeof prepare !== 'function') return false
  if (kind === 'timeout') return isImpatient(client.connectionParameters.query_timeout, delayMs)
  // nobody listens: the process would end, and all its requests with it
  if (kind === 'reset' || kind === 'sql:lost') return client.listenerCount('error') > 0
  return kind === 'error' || kind === 'delay' || Object.hasOwn(STATES, kind)
}

function isImpatient(milliseconds, delayMs) {
  return milliseconds > 0 && milliseconds <= delayMs
}

/** Have a statement fail when its turn comes. */
function strikeStatement({ injection: { kind, delayMs }, proof }, client, statement) {
  const { submit } = statement
  const instead = (text) => {
    Object.assign(statement, { text, values: undefined, name: undefined, rows: undefined })
    return submit.call(statement, client.connection)
  }
  const strike = () => {
    proof.end({ type: STATES[kind]?.[0] ?? (kind === 'sql:lost' ? '57P01' : kind) })
    if (kind === 'error') return new Error(LOST)
    if (kind === 'sql:lost') return instead(END_ME)
    if (kind !== 'reset') return instead(raising(kind, statement.text))
    client.connection.stream.destroy(reset())
    return null
  }
  statement.submit = () => {
    delete statement.submit
    if (kind !== 'delay' && kind !== 'timeout') return hold(client, statement, hasLeft(proof), strike, proof)
    const send = () => {
      proof.end()
      return statement.submit(client.connection)
    }
    return hold(client, statement, later(delayMs), send, proof)
  }
}

/** Goes on after this time; gives what prevents it. */
function later(milliseconds) {
  return (go) => {
    const timer = setTimeout(go, milliseconds)
    return () => clearTimeout(timer)
  }
}

/** Goes on when the mark has left this process. */
function hasLeft({ left }) {
  return (go) => {
    let wanted = true
    left.then(() => setImmediate(() => wanted && go()))
    return () => { wanted = false }
  }
}

function raising(kind, text) {
  const [state, message] = STATES[kind]
  return `DO $fit$ BEGIN RAISE EXCEPTION USING ERRCODE = '${state}', ` +
    `MESSAGE = '${message(verbOf(text))}', HINT = 'fault injected'; END $fit$`
}

/**
 * Have `then` send or fail a statement `after` a while. Whose caller gives up before, is never sent; the server answers nothing in its
 * place, and the connection goes on.
 */
function hold(client, statement, after, then, proof) {
  const { handleError } = statement
  const prevent = after(() => {
    delete statement.handleError
    const failed = then()
    if (!failed) return
    statement.handleError(failed, client.connection) // as the client does where it cannot be sent
    client.readyForQuery = true
    client._pulseQueryQueue()
  })
  statement.handleError = (error, connection) => {
    delete statement.handleError
    prevent()
    proof.end({ type: 'timeout' })
    handleError.call(statement, error, connection)
    if (!client._queryable) return
    statement.rows = undefined
    connection.query('')
  }
  return null
}

/** Have a connection fail that is about to be opened. */
function strikeConnection(client) {
  const aim = aimed((name) => connectPoint(name, peerOf(client.database)))
  const local = client.host?.startsWith('/')
  const firing = aim && ableToConnect(aim.injection, client, local) ? fire(aim) : undefined
  if (!firing) return
  const { injection: { kind, delayMs }, proof } = firing
  const { stream } = client.connection
  const { connect } = stream
  stream.connect = (port, host) => {
    delete stream.connect
    if (kind !== 'delay' && kind !== 'timeout') {
      unconnected(kind === 'error' ? 'refused' : kind, { host, port: Number(port) }, proof, (error) => {
        proof.end({ type: error.code })
        stream.destroy(error)
      })
      return stream
    }
    const timer = setTimeout(() => {
      proof.end()
      connect.call(stream, port, host)
    }, delayMs)
    stream.once('close', () => {
      clearTimeout(timer)
      proof.end({ type: 'timeout' })
    })
    return stream
  }
}

function ableToConnect({ kind, delayMs }, client, local) {
  if (kind === 'timeout') return isImpatient(client._connectionTimeoutMillis, delayMs)
  return kind === 'delay' || (!local && (kind === 'error' || connecting(kind, client.host)))
}
