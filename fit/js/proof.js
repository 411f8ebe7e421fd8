/**
 * Proof of firing: what happened at a point, on a span and on a diagnostics channel.
 *
 * The marks stand on the call's own span where that is the current one, as that of OpenTelemetry's
 * instrumentation of http is; else on a CLIENT span of ours. What could not be recorded is not injected:
 * without `@opentelemetry/api`, or where a span is not recorded, nothing is, unless somebody listens to
 * the channel `fit.fault` (node:diagnostics_channel), which is proof as well.
 */

import { randomBytes } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'

import { api } from './found.js'
import { within } from './request.js'

export const faults = channel('fit.fault')

/** This process, as its marks call it. */
const INSTANCE = randomBytes(8).toString('hex')
/** The longest that a call waits for its mark to leave. */
const WITHIN = 5 // milliseconds
const LEFT = Promise.resolve()

/**
 * Open the proof of one call.
 * @param {string} point
 * @param {string} experiment
 * @returns {Proof | undefined} undefined where nothing would be recorded
 */
export function open(point, experiment) {
  const witnessed = faults.hasSubscribers ? new Proof(undefined, false, point, experiment) : undefined
  if (!api) {
    if (!witnessed) warnOnce()
    return witnessed
  }
  const calling = api.trace.getActiveSpan()
  const ours = !isCall(calling)
  const span = ours ? begun(point) : calling
  if (span.isRecording()) {
    span.setAttribute('fit.point', point)
    return new Proof(span, ours, point, experiment)
  }
  if (ours) span.end()
  return witnessed
}

/** Whether a span is a call's own: its instrumentation ends it, and says how the call went. */
export function isCall(span) {
  return [api.SpanKind.CLIENT, api.SpanKind.PRODUCER].includes(span?.kind)
}

function begun(point) {
  return api.trace.getTracer('fit').startSpan(point, { kind: api.SpanKind.CLIENT })
}

/** Write on the span of the request being served which experiment it belongs to. */
export function mark({ experiment, arm }) {
  requestSpan()?.setAttributes({ 'fit.experiment': experiment, 'fit.arm': arm })
}

/** Where OpenTelemetry's instrumentation of http keeps a request's span, whatever is begun inside it. */
const RPC_METADATA = Symbol.for('OpenTelemetry SDK Context Key RPC_METADATA')

/** The span of the request that a context belongs to, as OpenTelemetry's instrumentation of http has begun it. */
export function rpcSpan(context = api?.context.active()) {
  return context?.getValue(RPC_METADATA)?.span
}

/** The span of the request being served; undefined where none was begun. */
export function requestSpan() {
  return rpcSpan() ?? api?.trace.getActiveSpan()
}

/**
 * Write a span of no request; whether it was recorded.
 * @param {string} name @param {Record<string, string>} attributes
 */
export function written(name, attributes) {
  const span = api?.trace.getTracer('fit').startSpan(name, { root: true, attributes })
  const recorded = span?.isRecording() ?? false
  span?.end()
  return recorded
}

/** The tracer provider itself; undefined without OpenTelemetry. */
function provider() {
  const proxy = api?.trace.getTracerProvider()
  return proxy?.getDelegate?.() ?? proxy
}

/** The service's name in the resource of the tracer provider; undefined where there is none. */
export function providedName() {
  const found = provider()
  const { attributes } = found?.resource ?? found?._resource ?? {}
  return attributes?.['service.name']
}

/** Where the call hangs by which the request came into this process; where it came from outside, its own span. */
function above(calling) {
  const own = requestSpan() ?? calling
  const here = own.spanContext()
  const spanId = own.parentSpanContext?.spanId ?? own.parentSpanId
  return spanId ? { ...here, spanId, isRemote: true } : here
}

/** Have all that is ended exported; fulfilled when that is done, and in time whatever becomes of it. */
function flushed() {
  const flush = within(undefined, () => api.context.with(api.ROOT_CONTEXT, async () => provider().forceFlush?.()))
  let timer
  const late = new Promise((resolve) => { timer = setTimeout(resolve, WITHIN) })
  return Promise.race([flush.catch(() => {}), late]).finally(() => clearTimeout(timer))
}

let warned = false
function warnOnce() {
  if (warned) return
  warned = true
  process.emitWarning('fit injects nothing: @opentelemetry/api is not found, so nothing would prove it')
}

/** What is written of one call: on the call's own span, or on one of ours, which ends with the call. */
export class Proof {
  #open = true

  /** Fulfilled when the mark has left this process: what may end it has to wait for that. */
  left = LEFT

  constructor(span, ours, point, experiment) {
    this.span = span
    this.ours = ours
    this.point = point
    this.experiment = experiment
  }

  /**
   * Send a mark: what is about to fire here, or would, leaves before it takes effect (fit/protocol/mark.py).
   * @param {'treatment' | 'control'} arm @param {string} kind
   */
  leave(arm, kind) {
    if (!this.span) return
    const said = ['1', arm, this.experiment, INSTANCE, `${kind}@${this.point}`].join(' ')
    const around = api.trace.setSpanContext(api.ROOT_CONTEXT, above(this.span))
    api.trace.getTracer('fit').startSpan('fit.mark', { attributes: { 'fit.mark': said } }, around).end()
    this.left = flushed()
  }

  /** @param {string} kind */
  fired(kind) {
    this.span?.setAttribute('fit.fired', kind)
    this.span?.addEvent('fit.fault', {
      'fit.fired': kind,
      'fit.experiment': this.experiment,
      'fit.point': this.point,
    })
    this.#publish('fired', kind)
  }

  /** @param {string} kind */
  wouldFire(kind) {
    this.span?.setAttribute('fit.would_fire', kind)
    this.#publish('would_fire', kind)
  }

  letThrough(kind) {
    this.span?.setAttribute('fit.let_through', true)
    this.#publish('let_through', kind)
  }

  outlived(kind) {
    this.span?.setAttribute('fit.outlived', true)
    this.#publish('outlived', kind)
  }

  /** The failure context had run out: the call is let through. */
  expired(kind) {
    this.span?.setAttribute('fit.expired', true)
    this.#publish('expired', kind)
  }

  /** @param {{status?: number, type?: string}} [failure] how the call ended, if it failed */
  end(failure) {
    if (!this.#open) return
    this.#open = false
    if (!this.ours) return
    if (failure) {
      this.span.setStatus({ code: api.SpanStatusCode.ERROR })
      if (failure.status) this.span.setAttribute('http.response.status_code', failure.status)
      if (failure.type) this.span.setAttribute('error.type', failure.type)
    }
    this.span.end()
  }

  #publish(outcome, kind) {
    const { point, experiment } = this
    if (faults.hasSubscribers) faults.publish({ point, kind, experiment, outcome })
  }
}
