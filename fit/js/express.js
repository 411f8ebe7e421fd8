/** Middleware for Express, or any server of (request, response, next). */

import { createHash } from 'node:crypto'

import { find } from './baggage.js'
import { hookLoaded } from './late.js'
import { mark } from './proof.js'
import { within } from './request.js'
import { reaches } from './reach.js'
import { verify } from './runtime.js'

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-/

/**
 * Make a request's verified failure context known to all that runs in its name. Changes nothing in
 * the request: what does not verify is ignored here, and taken out only at the edge.
 */
export function failureContext(request, response, next) {
  let found
  try {
    found = servedBy(request)
    // what it has started may go on, and work for others
    if (found) response?.once?.('close', () => { found.over = true })
  } catch {
    found = undefined // a fault of ours must never become a fault of the host's
  }
  within(found, next)
}

function servedBy(request) {
  const header = request.headers.baggage
  const value = header && find(header)
  const context = value ? verify(value) : undefined
  if (!context) return undefined
  reaches(...hookLoaded())
  mark(context)
  const trace = TRACEPARENT.exec(request.headers.traceparent ?? '')
  return { context, trace: trace ? trace[1] : {} }
}

/**
 * The experiment that stands for replaying a scenario on this device.
 * @param {string} device
 */
export function scenarioOf(device) {
  const digest = createHash('sha256').update(`ldfi scenario\n${device}`, 'utf8').digest('hex')
  return `s-${digest.slice(0, 24)}`
}
