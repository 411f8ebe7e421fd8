/**
 * http and https as injection points, and so whatever calls through them (axios, got, node-fetch).
 *
 * The point is where an agent would find a connection for a request: beneath whatever the application
 * or OpenTelemetry put around `request`. Where nothing is to happen the agent goes on by itself; where that
 * is known only later, it is asked then, as it would have been.
 */

import { AsyncResource } from 'node:async_hooks'
import http from 'node:http'
import https from 'node:https'

import { act, possible, slowed, standIn, unconnected } from './connection.js'
import { recordOf } from './kinds.js'
import { aimed, fire } from './passage.js'
import { httpPoint } from './points.js'
import { served, within } from './request.js'

const HOOKED = Symbol.for('fit.http')

/** Put the injection point into this process's agents. Doing it again changes nothing. */
export function hookHttp() {
  const original = http.Agent.prototype.addRequest
  if (original[HOOKED]) return
  const addRequest = function addRequest(request, options, ...rest) {
    if (served()) {
      stayInContext(request)
      if (struck(this, request, options, () => original.call(this, request, options, ...rest))) return undefined
    }
    return original.call(this, request, options, ...rest)
  }
  addRequest[HOOKED] = true
  http.Agent.prototype.addRequest = addRequest
  for (const { prototype } of [http.Agent, https.Agent]) connectOutside(prototype)
}

/**
 * Sockets are pooled, and what happens on one happens in the name of whoever opened it. So they are
 * opened in nobody's name, lest another request's retry ran in that of a request under experiment.
 */
function connectOutside(prototype) {
  const original = prototype.createConnection
  prototype.createConnection = function createConnection(...given) {
    return served() ? within(undefined, () => original.apply(this, given)) : original.apply(this, given)
  }
}

/** Have what listens to a request run in its caller's name, wherever its socket comes from. */
function stayInContext(request) {
  const scope = new AsyncResource('fit')
  const { emit } = request
  request.emit = (...given) => scope.runInAsyncScope(emit, request, ...given)
}

/** Whether a request was given a connection of ours; `goOn` is what the agent would do. Never throws. */
function struck(agent, request, options, goOn) {
  const aim = aimed((name) => pointOf(name, request, options))
  if (!aim || options.socketPath || !possible(aim.injection.kind, request.method, hostOf(options))) return false
  const connect = (connection) => joinAgents(connection, request, goOn)
  const secure = isSecure(options, agent)
  if (aim.injection.kind === 'timeout') {
    const connection = standIn(decidedLater(aim, request.method, connect), secure)
    hand(request, options, connection)
    connection.comeUp()
    return true
  }
  if (aim.injection.kind === 'slow') {
    const connection = standIn(slowed(aim, connect), secure)
    hand(request, options, connection)
    connection.comeUp()
    return true
  }
  const firing = fire(aim)
  if (!firing) return false
  const connection = standIn(act(firing, request.method, connect), secure)
  connection.once('close', () => firing.proof.end({ type: 'aborted' }))
  hand(request, options, connection)
  if (recordOf(firing.injection.kind).connecting) {
    refuse(connection, options, firing) // when the caller listens, which it does by then
  } else {
    connection.comeUp()
  }
  return true
}

/**
 * Join a connection with one that the agent finds for its request: as it would have found it, from its
 * pool and within its bounds, and it has it back afterwards.
 */
function joinAgents(connection, request, goOn) {
  request.onSocket = (socket, error) => {
    delete request.onSocket
    if (socket) socket._httpMessage = request // by this the agent knows whose it was
    connection.join(error, socket)
  }
  try {
    within(undefined, goOn)
  } catch (error) {
    connection.destroy(error)
  }
}

function pointOf(name, request, { host, port }) {
  return httpPoint(name, request.method, hostOf({ host }), port ? Number(port) : null, request.path)
}

function hostOf({ host }) {
  return host ?? 'localhost'
}

function isSecure(options, agent) {
  return (options.protocol ?? agent.protocol) === 'https:'
}

/** What an agent does with a socket that it has just made. */
function hand(request, { timeout }, connection) {
  connection.connecting = true
  request.onSocket(connection)
  if (request.timeout ?? timeout) connection.setTimeout(request.timeout ?? timeout)
}

function refuse(connection, options, { injection: { kind }, proof }) {
  const { host = 'localhost', lookup, family, autoSelectFamily } = options
  unconnected(kind, { host, port: Number(options.port), lookup, family, autoSelectFamily }, proof, (error) => {
    proof.end({ type: error.code })
    connection.connecting = false
    connection.destroy(error)
  })
}

/**
 * A timeout can happen only to a caller who has one, and many set it when they see the socket: it is
 * looked at when the request comes.
 */
function decidedLater(aim, method, connect) {
  return AsyncResource.bind((connection) => {
    const { timeout: patience } = connection
    const ends = patience > 0 && patience <= aim.injection.delayMs
    const firing = ends ? fire(aim) : undefined
    if (firing) act(firing, method, connect)(connection)
    else connect(connection)
  })
}
