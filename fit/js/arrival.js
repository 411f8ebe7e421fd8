/**
 * An edge in Node stands within the tracing: OpenTelemetry has read a request's headers and begun its span
 * before any middleware sees it. So what the edge decides is told to both.
 */

import { values } from './baggage.js'
import { ENTRY } from './context.js'
import { api } from './found.js'
import { requestSpan } from './proof.js'

/** Where OpenTelemetry's own packages look for it: `createContextKey` gives the same key for the same name. */
const SUPPRESS_TRACING = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

/** Whether what is done to this request would be seen: its span is sampled, or begins further in. */
export function isSeen() {
  const span = requestSpan()
  return !span || (span.isRecording() && Boolean(span.spanContext().traceFlags & api.TraceFlags.SAMPLED))
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
 * A context of OpenTelemetry's with this entry of ours in its baggage, and with no other; the same where it need not
 * change.
 * @param {string | undefined} value undefined: with none
 */
export function withOurs(context, value) {
  const entries = api.propagation.getBaggage(context)?.getAllEntries() ?? []
  const others = entries.filter(([name]) => name.trim().toLowerCase() !== ENTRY)
  if (others.length === entries.length && value === undefined) return context
  const ours = value === undefined ? [] : [[ENTRY, { value }]] // the first, where no limit on entries cuts it off
  return api.propagation.setBaggage(context, api.propagation.createBaggage(Object.fromEntries([...ours, ...others])))
}

/** Run work, and all that it begins, with the entry of ours that this header has, and with no other. */
export function runWith(header, work) {
  if (!api) return work()
  return api.context.with(withOurs(api.context.active(), values(header)[0]), work)
}

/** Run work whose calls are nobody's request, and leave no spans. */
export function untraced(work) {
  return api ? api.context.with(api.ROOT_CONTEXT.setValue(SUPPRESS_TRACING, true), work) : work()
}
