/** Beside OpenTelemetry's own instrumentation of a library: where the proof stands, and what spans say. */

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'

import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis'
import { KafkaJsInstrumentation } from '@opentelemetry/instrumentation-kafkajs'
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg'
import { RedisInstrumentation } from '@opentelemetry/instrumentation-redis'
import {
  BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

import { failureContext, install } from '../../index.js'
import { contextOfKinds, FIT_KEYS } from '../support/sign.js'
import { broker } from '../support/broker.js'
import { postgresql, redis, without } from '../support/servers.js'

const exporter = new InMemorySpanExporter()
const require = createRequire(import.meta.url)
const closing = []

before(() => {
  process.env.FIT_KEYS = FIT_KEYS
  install('shop')
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  trace.setGlobalTracerProvider(provider)
  const all = [PgInstrumentation, RedisInstrumentation, IORedisInstrumentation, KafkaJsInstrumentation]
  for (const Instrumentation of all) {
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
  assert.deepEqual(refused.map(({ name }) => name), ['fit.mark', 'pg.connect', 'served'])

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

const REDIS = {
  redis: async (port) => {
    const client = await require('redis').createClient({ socket: { host: '127.0.0.1', port } }).connect()
    closing.push(() => client.destroy())
    return (key) => client.get(key)
  },
  ioredis: async (port) => {
    const client = new (require('ioredis').Redis)({ host: '127.0.0.1', port })
    closing.push(() => client.disconnect())
    return (key) => client.get(key)
  },
}

for (const [name, connected] of Object.entries(REDIS)) {
  test(`${name}: a command that is hit has a span of ours in place of its own`, { skip: without('redis-server') }, async () => {
    const { port, stop } = await redis()
    closing.push(stop)
    const get = await connected(port)
    const point = `shop>db:GET:127.0.0.1:${port}`
    for (const arm of ['t', 'c']) {
      const spans = await serve(contextOfKinds([['redis-loading', point]], { arm }), () => get('a').catch(() => {}))
      assert.deepEqual(proofs(spans, point), [[SpanKind.CLIENT, 'redis:loading', arm === 't' ? FAILED : FINE]])
      const theirs = spans.filter(({ attributes }) => attributes['db.system.name'] === 'redis')
      assert.equal(theirs.length, arm === 't' ? 0 : 1)
      for (const { attributes } of theirs) { // from which the lineage makes the same name
        assert.equal(attributes['server.address'], '127.0.0.1')
        assert.equal(attributes['server.port'], port)
        assert.match(attributes['db.query.text'], /^get/i)
      }
    }
  })
}

test('kafkajs: each attempt has a span of ours beside that of the message', async () => {
  const at = await broker('plays')
  closing.push(at.stop)
  const { Kafka, logLevel, Partitioners } = require('kafkajs')
  const kafka = new Kafka({ brokers: [`127.0.0.1:${at.port}`], logLevel: logLevel.NOTHING })
  const retry = { retries: 1, initialRetryTime: 10 }
  const producer = kafka.producer({ retry, createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  closing.push(() => producer.disconnect())
  const point = 'shop>message:send:kafka/plays'
  for (const arm of ['t', 'c']) {
    const spans = await serve(contextOfKinds([['refused', point]], { arm }), () =>
      producer.send({ topic: 'plays', messages: [{ value: 'x' }] }).catch(() => {}))
    const proof = [SpanKind.CLIENT, 'refused', arm === 't' ? FAILED : FINE]
    assert.deepEqual(proofs(spans, point), arm === 't' ? [proof, proof] : [proof])
    const { kind, attributes, status } = spans.find(({ name }) => name === 'send plays')
    assert.deepEqual([kind, status.code], [SpanKind.PRODUCER, arm === 't' ? FAILED : FINE])
    assert.equal(attributes['messaging.operation.name'], 'send')
    assert.equal(attributes['messaging.destination.name'], 'plays')
  }
})
