/** Middleware for Express, or any server of (request, response, next). */

import { createHash } from 'node:crypto'

import { find } from './baggage.js'
import { hookLoaded } from './late.js'
import { mark } from './proof.js'
import { carries } from './propagation.js'
import { listensFor, within } from './request.js'
import { reaches } from './reach.js'
import { recognize } from './runtime.js'

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-/

/**
 * Make a request's verified failure context known to all that runs in its name. Changes nothing in
 * the request: what does not verify is ignored here, and taken out only at the edge.
 */
export function failureContext(request, response, next) {
  const isAnswered = () => Boolean(response?.writableEnded || response?.closed || response?.destroyed)
  readRequest(request.headers, [request, response], isAnswered, next)
}

/** Servers at which an edge stands. @type {WeakSet<object>} */
const edges = new WeakSet()

/** The server of this request, which is noted to be an edge; undefined where that was known, or it has none. */
export function standsAt(request) {
  const server = request.httpVersionMajor === 1 ? request.socket?.server : undefined
  if (!server || edges.has(server)) return undefined
  edges.add(server)
  return server
}

/** Whether contexts of requests to a server are for its edge alone to read. */
export function hasEdge(server) {
  return edges.has(server)
}

/**
 * Serve a request of any protocol, by its headers.
 * @param {{baggage?: string, traceparent?: string}} headers
 * @param {(import('node:events').EventEmitter | undefined)[]} emitters whose listeners work for the request
 * @param {() => boolean} isOver whether it has been answered
 * @param {() => void} next
 */
export function readRequest(headers, emitters, isOver, next) {
  let found
  try {
    found = servedBy(headers, isOver)
    for (const each of emitters) listensFor(each, found)
    if (found) carries(found)
  } catch {
    found = undefined // a fault of ours must never become a fault of the host's
  }
  within(found, next)
}

function servedBy(headers, isOver) {
  const header = headers.baggage
  const value = header && find(header)
  const context = value ? recognize(value) : undefined
  if (!context) return undefined
  for (const points of hookLoaded()) reaches(...points)
  mark(context)
  const trace = TRACEPARENT.exec(headers.traceparent ?? '')
  return { context, value, trace: trace ? trace[1] : {}, isOver }
}

/**
 * The experiment that stands for replaying a scenario on this device.
 * @param {string} device
 */
export function scenarioOf(device) {
  const digest = createHash('sha256').update(`ldfi scenario\n${device}`, 'utf8').digest('hex')
  return `s-${digest.slice(0, 24)}`
}
