/**
 * Proof of firing: what happened at a point, on a span and on a diagnostics channel.
 *
 * A call that is hit gets a CLIENT span of ours, since the call's own never starts. What could not be
 * recorded is not injected: without `@opentelemetry/api`, or where a span is not recorded, nothing is,
 * unless somebody listens to the channel `fit.fault` (node:diagnostics_channel), which is proof as well.
 */

import { channel } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import { join } from 'node:path'

export const faults = channel('fit.fault')

const api = found('@opentelemetry/api')

/**
 * OpenTelemetry's API as the application has it. From this file it is not found where the package is a
 * symbolic link; there may be several copies, and all of them share one provider.
 */
function found(name) {
  for (const from of [import.meta.url, process.argv[1], join(process.cwd(), 'package.json')]) {
    try {
      if (from) return createRequire(from)(name)
    } catch {
      continue // the next one
    }
  }
  return undefined
}

/**
 * Open the proof of one call.
 * @param {string} point
 * @param {string} experiment
 * @returns {Proof | undefined} undefined where nothing would be recorded
 */
export function open(point, experiment) {
  const witnessed = faults.hasSubscribers ? new Proof(undefined, point, experiment) : undefined
  if (!api) return witnessed
  const span = api.trace.getTracer('fit').startSpan(point, {
    kind: api.SpanKind.CLIENT,
    attributes: { 'fit.point': point },
  })
  if (span.isRecording()) return new Proof(span, point, experiment)
  span.end()
  return witnessed
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
