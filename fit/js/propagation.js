/**
 * Which entry of ours a call carries on, whatever context OpenTelemetry makes it under.
 *
 * Instrumentations bind what runs later (a middleware's `next`, a request's listeners) to the context of before the
 * edge, and that has the baggage that came in. So what was decided of a request is kept beside its span, and asked for
 * where baggage is written into a call: at the global propagator.
 */

import { withOurs } from './arrival.js'
import { api } from './found.js'
import { rpcSpan } from './proof.js'
import { sending } from './request.js'

/** Where OpenTelemetry's API keeps what is registered, for every copy of it. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')
const HOOKED = Symbol.for('fit.propagation')

/** @type {WeakMap<object, import('./request.js').Served | null>} span of a request → what it carries, null: nothing */
const decided = new WeakMap()
let standing = false // whether an edge is in this process: what nobody decided of does not leave it then

/**
 * Keep of the request being served what it carries on.
 * @param {import('./request.js').Served | undefined} served
 */
export function carries(served) {
  const span = rpcSpan()
  if (span) decided.set(span, served ?? null)
  if (api) hook(globalThis[REGISTERED]?.propagation)
}

/** Let nothing out of this process that no edge or reader here has seen. */
export function standAtEdge() {
  standing = true
}

function hook(propagator) {
  if (!propagator || Object.hasOwn(propagator, HOOKED)) return
  const { inject } = propagator
  propagator.inject = function (context, ...given) {
    return inject.call(this, allowed(context), ...given)
  }
  propagator[HOOKED] = true
}

function allowed(context) {
  try {
    const span = rpcSpan(context)
    const request = span ? decided.get(span) : sending()
    if (request === undefined && !standing) return context
    return withOurs(context, request && !request.over ? request.value : undefined)
  } catch {
    return context // one that is not of this API
  }
}
