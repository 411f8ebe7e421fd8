/** With OpenTelemetry's SDK: where the proof stands, and what the service is called. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { after, before, test } from 'node:test'

import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

import { failureContext, install } from '../../index.js'
import { service } from '../../runtime.js'
import { contextOf, contextOfKinds, FIT_KEYS } from '../support/sign.js'

const exporter = new InMemorySpanExporter()
const tracer = trace.getTracer('application')
let server, url, point

before(async () => {
  process.env.FIT_KEYS = FIT_KEYS
  for (const known of ['OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES']) delete process.env[known]
  install()
  assert.equal(service(), 'unknown_service')
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  server = createServer((request, response) => response.end('fine')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${server.address().port}/titles/17`
  point = `shop>http:GET:127.0.0.1:${server.address().port}/titles/*`
})
after(() => {
  server.close()
  server.closeAllConnections()
})

/** Serve a request with this context in a SERVER span, and return that span's and the others' marks. */
async function serve(value, work) {
  exporter.reset()
  await tracer.startActiveSpan('served', { kind: SpanKind.SERVER }, (span) =>
    new Promise((resolve) => {
      failureContext({ headers: { baggage: `fit=${value}` } }, {}, () => resolve(work()))
    }).finally(() => span.end()))
  return Object.fromEntries(exporter.getFinishedSpans().map((span) => [span.name, span]))
}

function called() {
  return new Promise((resolve) => {
    get(url, (response) => resolve(response.resume().statusCode)).on('error', (error) => resolve(error.code))
  })
}

test('before there is a provider nothing is injected; from it comes the service\'s name', async () => {
  await serve(contextOf([['e', point]]), async () => assert.equal(await called(), 200))
  trace.setGlobalTracerProvider(new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'shop' }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  }))
  install() // a name that was found is kept
  assert.equal(service(), 'shop')
})

test('the proof stands on a span of ours, and the served one says of what it is part', async () => {
  const spans = await serve(contextOfKinds([['refused', point]]), async () => {
    assert.equal(await called(), 'ECONNREFUSED')
  })
  const { attributes, kind, status, events } = spans[point]
  const proof = { 'fit.point': point, 'fit.fired': 'refused', 'error.type': 'ECONNREFUSED' }
  assert.deepEqual([attributes, kind, status.code], [proof, SpanKind.CLIENT, SpanStatusCode.ERROR])
  assert.deepEqual(events.map(({ name }) => name), ['fit.fault'])
  assert.equal(spans[point].parentSpanContext.spanId, spans.served.spanContext().spanId)
  assert.deepEqual(spans.served.attributes, { 'fit.experiment': 'e7c1', 'fit.arm': 'treatment' })
})

test('where the call\'s own span is the current one, the proof stands there', async () => {
  const spans = await serve(contextOfKinds([['status-500', point]]), () =>
    tracer.startActiveSpan('GET', { kind: SpanKind.CLIENT }, async (span) => {
      assert.equal(await called(), 500)
      span.end()
    }))
  assert.deepEqual(Object.keys(spans).sort(), ['GET', 'fit.mark', 'served'])
  assert.equal(spans.GET.attributes['fit.fired'], 'status:500')
  assert.equal(spans.GET.attributes['fit.point'], point)
})

for (const [flush, ends] of [['is done soon', true], ['hangs', false], ['throws', true]]) {
  test(`the mark has left before a fault takes effect, and hangs where the request came in: a flush that ${flush}`, async () => {
    const caller = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1, isRemote: true }
    let begun = false
    exporter.forceFlush = () => {
      begun = true
      if (flush === 'throws') throw new Error('no collector')
      return new Promise((resolve) => ends && setImmediate(resolve))
    }
    for (const [arm, told] of [['t', 'treatment'], ['c', 'control']]) {
      const spans = await context.with(trace.setSpanContext(context.active(), caller), () =>
        serve(contextOfKinds([['refused', point]], { arm }), async () => {
          assert.equal(await called(), arm === 't' ? 'ECONNREFUSED' : 200)
          assert.ok(begun) // how long it takes depends on the machine
        }))
      const said = spans['fit.mark'].attributes['fit.mark']
      assert.match(said, new RegExp(`^1 ${told} e7c1 [0-9a-f]{16} refused@shop>http:GET:`))
      assert.equal(spans['fit.mark'].parentSpanContext.spanId, caller.spanId)
      assert.equal(spans['fit.mark'].spanContext().traceId, caller.traceId)
    }
    delete exporter.forceFlush
  })
}

test('of a call that is delayed past its caller\'s patience the proof ends with it', async () => {
  const spans = await serve(contextOf([['d', point, '9000']]), () => new Promise((resolve) => {
    const request = get(url, { timeout: 50 }).on('timeout', () => request.destroy())
    request.on('error', () => request.on('close', () => setTimeout(resolve, 10)))
  }))
  assert.equal(spans[point].status.code, SpanStatusCode.ERROR)
  assert.equal(spans[point].attributes['error.type'], 'timeout')
})
