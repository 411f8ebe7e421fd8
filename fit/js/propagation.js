/**
 * Which entry of ours a call carries on, whatever context OpenTelemetry makes it under.
 *
 * Instrumentations bind what runs later (a middleware's `next`, a request's listeners) to the context of before the
 * edge, and that has the baggage that came in. So what was decided of a request is kept beside its span, and asked for
 * where baggage is written into a call: at the global propagator.
 */

import { withOurs } from './arrival.js'
import { api } from './found.js'
import { isCall, rpcSpan } from './proof.js'
import { misses } from './reach.js'
import { sending } from './request.js'

/** Where OpenTelemetry's API keeps what is registered, for every copy of it. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')
const HOOKED = Symbol.for('fit.propagation')
/** Instrumentations whose calls are sent to hosts that are looked at: see withhold.js, kafkajs.js. */
const KNOWN = new Set(['http', 'undici', 'fetch-node', 'grpc', 'kafkajs'])

/** @type {WeakMap<object, import('./request.js').Served | null>} a request's span → what it carries, null: nothing */
const decided = new WeakMap()
let standing = false // whether an edge is in this process: what nobody decided of does not leave it then

/**
 * Keep of the request being served what it carries on.
 * @param {import('./request.js').Served | null} served null: nothing
 */
export function carries(served) {
  const span = rpcSpan()
  if (span) decided.set(span, served)
  if (api) hook(globalThis[REGISTERED]?.propagation)
}

/** Keep of a request at the edge that it carries nothing on, as whatever no edge or reader here has seen. */
export function carryNothing() {
  standing = true
  carries(null)
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
    if (isUnknown(api.trace.getSpan(context))) return withOurs(context, undefined)
    const span = rpcSpan(context)
    const request = span ? decided.get(span) : sending()
    if (request === undefined && !standing) return context
    return withOurs(context, request && !request.isOver?.() ? request.value : undefined)
  } catch {
    return context // one that is not of this API
  }
}

/** Whether a call is of a library that OpenTelemetry instruments and nobody here knows, which is told of. */
function isUnknown(call) {
  if (!isCall(call)) return false
  const { name } = call.instrumentationScope ?? call.instrumentationLibrary ?? {}
  const [, library] = /\binstrumentation-(.+)$/.exec(name) ?? []
  if (library === undefined || KNOWN.has(library)) return false
  misses(library)
  return true
}
