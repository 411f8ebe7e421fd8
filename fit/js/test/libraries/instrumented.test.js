/** Beside OpenTelemetry's own instrumentation of a library: where the proof stands, and what spans say. */

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'

import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg'
import {
  BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

import { failureContext, install } from '../../index.js'
import { contextOfKinds, FIT_KEYS } from '../support/sign.js'
import { postgresql, without } from '../support/servers.js'

const exporter = new InMemorySpanExporter()
const require = createRequire(import.meta.url)
const closing = []

before(() => {
  process.env.FIT_KEYS = FIT_KEYS
  install('shop')
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  trace.setGlobalTracerProvider(provider)
  for (const Instrumentation of [PgInstrumentation]) {
    new Instrumentation().setTracerProvider(provider) // enabled, before the libraries are loaded
  }
})
after(async () => {
  for (const close of closing.reverse()) await close()
})

/** Serve a request with this context in a SERVER span; all spans that have ended since. */
async function serve(value, work) {
  exporter.reset()
  await trace.getTracer('application').startActiveSpan('served', { kind: SpanKind.SERVER }, (span) =>
    new Promise((resolve) => {
      failureContext({ headers: { baggage: `fit=${value}` } }, {}, () => resolve(work()))
    }).finally(() => span.end()))
  return exporter.getFinishedSpans()
}

/** The span that proves what happened at a point, and how many there are. */
function proofs(spans, point) {
  const found = spans.filter(({ attributes }) => attributes['fit.point'] === point)
  const served = spans.find(({ name }) => name === 'served')
  for (const each of found) assert.equal(each.parentSpanContext.spanId, served.spanContext().spanId)
  return found.map(({ kind, attributes, status }) =>
    [kind, attributes['fit.fired'] ?? attributes['fit.would_fire'], status.code])
}

const FAILED = SpanStatusCode.ERROR
const FINE = SpanStatusCode.UNSET

test('pg: statements have a span of ours, connections their own', { skip: without('initdb') }, async () => {
  const { port, stop } = await postgresql()
  closing.push(stop)
  const pg = require('pg')
  const where = { host: '127.0.0.1', user: 'ldfi', database: 'postgres' }
  const connect = contextOfKinds([['refused', 'shop>db:connect:postgres']])
  const refused = await serve(connect, () =>
    assert.rejects(new pg.Client({ ...where, port: 1 }).connect(), { code: 'ECONNREFUSED' }))
  assert.deepEqual(proofs(refused, 'shop>db:connect:postgres'), [[SpanKind.CLIENT, 'refused', FAILED]])
  assert.deepEqual(refused.map(({ name }) => name), ['pg.connect', 'served'])

  const pool = new pg.Pool({ ...where, port })
  closing.push(() => pool.end())
  const point = 'shop>db:SELECT:postgres/pg_class'
  for (const arm of ['t', 'c']) {
    const spans = await serve(contextOfKinds([['sql-deadlock', point]], { arm }), () =>
      pool.query('select 1 from pg_class').catch(() => {}))
    assert.deepEqual(proofs(spans, point), [[SpanKind.CLIENT, 'sql:deadlock', arm === 't' ? FAILED : FINE]])
    const { attributes } = spans.find(({ name }) => name === 'pg.query:SELECT postgres')
    assert.equal(attributes['db.query.text'], 'select 1 from pg_class')
    assert.equal(attributes['db.namespace'], 'postgres')
  }
})
