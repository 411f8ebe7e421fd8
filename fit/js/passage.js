/** How a call passes an injection point: the one path through every client. */

import { admits } from './occurrence.js'
import { pointHash } from './points.js'
import { open } from './proof.js'
import { served } from './request.js'
import { service } from './runtime.js'

/**
 * What the context of a request asks of one call.
 * @typedef {{point: string, injection: import('./context.js').Injection,
 *   context: import('./context.js').FailureContext, request: import('./request.js').Served}} Aim
 *
 * What is to be carried out, with its proof. Whoever is given it ends the proof.
 * @typedef {{injection: import('./context.js').Injection, proof: import('./proof.js').Proof}} Firing
 */

/**
 * What the request being served asks of a call; undefined for nothing. Nothing is claimed yet. Never
 * throws: a fault of ours must never become a fault of the host's.
 * @param {(service: string) => string} pointOf
 * @returns {Aim | undefined}
 */
export function aimed(pointOf) {
  try {
    const context = served()?.context
    const name = service()
    if (!context || name === undefined) return undefined
    const point = pointOf(name)
    const injection = context.injections.get(pointHash(point))
    return injection && { point, injection, context, request: served() }
  } catch {
    return undefined
  }
}

/**
 * Count the call, write what happens or would happen, and return what is to be carried out; undefined
 * for nothing. Only for calls that can fail in this way natively. Never throws.
 * @param {Aim} aim
 * @returns {Firing | undefined}
 */
export function fire({ point, injection, context, request }) {
  try {
    const proof = open(point, context.experiment)
    if (!proof) return undefined
    if (request.isOver?.()) {
      proof.outlived(injection.kind)
    } else if (!(context.expires > Date.now() / 1000)) {
      proof.expired(injection.kind)
    } else if (injection.first && !admits(request.trace, point, injection.first)) {
      proof.letThrough(injection.kind)
    } else if (context.arm === 'control') {
      proof.leave('control', injection.kind)
      proof.wouldFire(injection.kind)
    } else {
      proof.leave('treatment', injection.kind)
      proof.fired(injection.kind)
      return { injection, proof }
    }
    proof.end()
  } catch {
    // what cannot be written down does not happen
  }
  return undefined
}
