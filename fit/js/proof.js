/**
 * Proof of firing: what happened at a point, on a span and on a diagnostics channel.
 *
 * Where `@opentelemetry/api` is installed, a call that is hit gets a CLIENT span of ours, since the
 * call's own never starts; what could not be recorded is not injected. Where it is not, the channel
 * `fit.fault` (node:diagnostics_channel) is all the proof there is.
 */

import { channel } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'

export const faults = channel('fit.fault')

const api = optional('@opentelemetry/api')

function optional(name) {
  try {
    return createRequire(import.meta.url)(name)
  } catch {
    return undefined
  }
}

/**
 * Open the proof of one call.
 * @param {string} point
 * @param {string} experiment
 * @returns {Proof | undefined} undefined where nothing would be recorded
 */
export function open(point, experiment) {
  if (!api) return new Proof(undefined, point, experiment)
  const span = api.trace.getTracer('fit').startSpan(point, {
    kind: api.SpanKind.CLIENT,
    attributes: { 'fit.point': point },
  })
  if (span.isRecording()) return new Proof(span, point, experiment)
  span.end()
  return undefined
}

class Proof {
  constructor(span, point, experiment) {
    this.span = span
    this.point = point
    this.experiment = experiment
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

  /** @param {{status?: number, type?: string}} [failure] how the call ended, if it failed */
  end(failure) {
    if (failure && this.span) {
      this.span.setStatus({ code: api.SpanStatusCode.ERROR })
      if (failure.status) this.span.setAttribute('http.response.status_code', failure.status)
      if (failure.type) this.span.setAttribute('error.type', failure.type)
    }
    this.span?.end()
  }

  #publish(outcome, kind) {
    const { point, experiment } = this
    if (faults.hasSubscribers) faults.publish({ point, kind, experiment, outcome })
  }
}
