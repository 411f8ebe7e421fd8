/**
 * An edge in Node stands within the tracing: OpenTelemetry has read a request's headers and begun its span
 * before any middleware sees it. So what the edge decides is told to both.
 */

import { values } from './baggage.js'
import { ENTRY } from './context.js'
import { found } from './found.js'
import { requestSpan } from './proof.js'

const api = found('@opentelemetry/api')
/** Where OpenTelemetry's own packages look for it: `createContextKey` gives the same key for the same name. */
const SUPPRESS_TRACING = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

/** Whether what is done to this request would be seen: its span is recorded, or begins further in. */
export function isSeen() {
  return requestSpan()?.isRecording() ?? true
}

/**
 * Write on the span of the request that it came in at an edge, and what it shall tell of its headers.
 * @param {[string, string][]} features
 * @param {boolean} again whether a request of the same device was stamped here before
 */
export function markArrival(features, again) {
  const span = requestSpan()
  span?.setAttribute('fit.edge', true)
  for (const [name, value] of features) span?.setAttribute(`fit.feature.${name}`, value)
  if (again) span?.setAttribute('fit.again', true)
}

/**
 * OpenTelemetry's context with the entry of ours that this header has, and with no other; undefined where it
 * need not change.
 * @param {string} header
 */
export function contextWith(header) {
  if (!api) return undefined
  const active = api.context.active()
  const before = api.propagation.getBaggage(active) ?? api.propagation.createBaggage()
  const foreign = before.getAllEntries().map(([name]) => name).filter((name) => name.trim().toLowerCase() === ENTRY)
  const [ours] = values(header)
  if (!foreign.length && ours === undefined) return undefined
  const cleaned = before.removeEntries(...foreign)
  return api.propagation.setBaggage(active, ours === undefined ? cleaned : cleaned.setEntry(ENTRY, { value: ours }))
}

/** Run work, and all that it begins, in such a context. */
export function runIn(context, work) {
  return context ? api.context.with(context, work) : work()
}

/** Run work whose calls are nobody's request, and leave no spans. */
export function untraced(work) {
  return api ? api.context.with(api.ROOT_CONTEXT.setValue(SUPPRESS_TRACING, true), work) : work()
}
