/**
 * As much of OpenTelemetry as the example needs, so that it needs no package: W3C headers in and out,
 * SERVER and CLIENT spans, OTLP as JSON. A service of yours has the SDK for this.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'

const NAME = process.env.OTEL_SERVICE_NAME
const ENDPOINT = `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`
const EVERY = Number(process.env.OTEL_BSP_SCHEDULE_DELAY ?? 5000)

const storage = new AsyncLocalStorage()
const plainFetch = globalThis.fetch
let ended = []

const now = () => String(BigInt(Date.now()) * 1000000n)
const said = (attributes) =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: String(value) } }))

function begin(kind, name, attributes, parent) {
  const spanId = randomBytes(8).toString('hex')
  return { ...parent, parentSpanId: parent.spanId, spanId, kind, name, attributes, start: now() }
}

function end(span, code) {
  ended.push({
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: span.start,
    endTimeUnixNano: now(),
    attributes: said(span.attributes),
    status: { code },
  })
}

/** Run a request within a SERVER span that continues the caller's trace. */
export function traced(request, response, next) {
  const [, traceId, spanId] = (request.headers.traceparent ?? '').split('-')
  const parent = { traceId: traceId ?? randomBytes(16).toString('hex'), spanId }
  const path = request.url.split('?')[0]
  const about = { 'http.request.method': request.method, 'url.path': path }
  const span = begin(2, `${request.method} ${path}`, about, parent)
  span.baggage = request.headers.baggage
  response.on('finish', () => {
    span.attributes['http.response.status_code'] = response.statusCode
    end(span, response.statusCode >= 500 ? 2 : 0)
  })
  storage.run(span, next)
}

/** Wrap `fetch`, which is an injection point already: each call gets a CLIENT span. */
export function traceFetch() {
  const injected = globalThis.fetch
  globalThis.fetch = async (url, init = {}) => {
    const parent = storage.getStore()
    if (!parent) return injected(url, init)
    const { hostname, port, pathname } = new URL(url)
    const about = { 'http.request.method': 'GET', 'url.path': pathname }
    Object.assign(about, { 'server.address': hostname, 'server.port': port })
    const span = begin(3, `GET ${hostname}`, about, parent)
    const headers = { ...init.headers, traceparent: `00-${span.traceId}-${span.spanId}-01` }
    if (parent.baggage) headers.baggage = parent.baggage
    try {
      const answer = await storage.run(span, () => injected(url, { ...init, headers }))
      span.attributes['http.response.status_code'] = answer.status
      end(span, answer.status >= 400 ? 2 : 0)
      return answer
    } catch (error) {
      end(span, 2)
      throw error
    }
  }
}

subscribe('fit.fault', ({ point, kind, experiment, outcome }) => {
  const span = storage.getStore()
  if (!span || outcome !== 'fired') return
  const proof = { 'fit.point': point, 'fit.fired': kind, 'fit.experiment': experiment }
  Object.assign(span.attributes, proof)
})

setInterval(() => {
  if (ended.length === 0) return
  const resource = { attributes: said({ 'service.name': NAME }) }
  const body = JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans: ended }] }] })
  ended = []
  const [name, value] = decodeURIComponent(process.env.OTEL_EXPORTER_OTLP_HEADERS ?? 'x-none=').split('=')
  const headers = { 'content-type': 'application/json', [name]: value }
  plainFetch(ENDPOINT, { method: 'POST', headers, body }).catch(() => {})
}, EVERY).unref()
