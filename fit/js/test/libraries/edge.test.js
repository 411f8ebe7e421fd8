/** An edge that stamps, in node:http, Fastify and Koa, and beside OpenTelemetry. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import { after, before as first, test } from 'node:test'

import { context, propagation, SpanKind, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { RPCType, setRPCMetadata, W3CBaggagePropagator } from '@opentelemetry/core'
import {
  BasicTracerProvider, InMemorySpanExporter, SamplingDecision, SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

import { find } from '../../baggage.js'
import { steady } from '../../clock.js'
import { decode } from '../../context.js'
import { Edge, standing } from '../../edge.js'
import { before, current, install, Keys, pointHash } from '../../index.js'
import { RulesPoll } from '../../poll.js'
import { leaseOf } from '../../rules.js'
import { contextOf, FIT_KEYS } from '../support/sign.js'
import { ask, closeAll, serversOf } from './frameworks.js'

const POINT = 'api>http:GET:ratings/titles/*'
const TITLES = [
  { feature: 'method', value: 'GET', negated: false },
  { feature: 'route', value: '/titles/*', negated: false },
]
const exporter = new InMemorySpanExporter()
let sampled = true

/** Rules that were given, not fetched. */
class Given extends RulesPoll {
  start() {}
}

function edgeWith(more = {}, environ = {}) {
  const rule = {
    experiment: 'e1', salt: 's', predicate: TITLES, treatment: 1, control: 0, delay_ms: 1000,
    faults: [`refused@${POINT}`], members: null, yields_to: [], ...more,
  }
  const poll = new Given('http://127.0.0.1:9', 't')
  const lease = leaseOf(JSON.stringify({ version: 'v', lease_seconds: 60, rules: [rule] }))
  poll.known.hold(lease, steady() + lease.seconds)
  const edge = new Edge(poll, environ)
  return standing(() => edge)
}

first(() => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  propagation.setGlobalPropagator(new W3CBaggagePropagator())
  trace.setGlobalTracerProvider(new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
    sampler: {
      shouldSample: () => ({ decision: sampled ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD }),
    },
  }))
})
after(closeAll)

function read(header) {
  const value = find(header ?? '')
  return value && decode(Keys.parse(FIT_KEYS), value, Date.now() / 1000)
}

const told = ({ headers, rawHeaders }) => (
  { baggage: headers.baggage, raw: rawHeaders.includes(headers.baggage), experiment: current()?.experiment })

for (const [name, serve] of Object.entries(serversOf(told))) {
  test(`${name}: a request of the class is stamped, and its own calls are under the experiment`, async () => {
    const url = await serve([edgeWith()])
    const device = { 'x-device-id': 'd1' }
    const treated = await ask(`${url}/titles/17?page=2`, { ...device, baggage: `a=b,fit=${contextOf([['e', 'p']])}` })
    const { experiment, arm, injections } = read(treated.baggage)
    assert.deepEqual([experiment, arm, injections.get(pointHash(POINT)).kind], ['e1', 'treatment', 'refused'])
    assert.match(treated.baggage, /^fit=[^,]+,a=b$/)
    assert.deepEqual([treated.raw, treated.experiment], [true, 'e1'])
    assert.deepEqual(await ask(`${url}/basket`, device), { raw: false })
    assert.deepEqual(await ask(`${url}/titles/17`, {}), { raw: false })
  })
}

test('below a path at which Express mounts a router, the whole path counts', () => {
  const request = { method: 'GET', url: '/17', originalUrl: '/titles/17?q=1', headers: { 'x-device-id': 'd1' } }
  edgeWith()(request, {}, () => {})
  assert.ok(read(request.headers.baggage))
})

test('an absolute target is taken by its path', () => {
  const request = { method: 'GET', url: 'http://shop:80/titles/17', headers: { 'x-device-id': 'd1' } }
  edgeWith()(request, {}, () => {})
  assert.ok(read(request.headers.baggage))
})

test('baggage that would grow beyond what OpenTelemetry reads is left as it was', () => {
  const baggage = `a=${'b'.repeat(8150)}`
  const request = { method: 'GET', url: '/titles/17', headers: { 'x-device-id': 'd1', baggage } }
  edgeWith()(request, {}, () => {})
  assert.ok(request.headers.baggage === baggage)
})

test('a lease that has run out stamps nothing', () => {
  const poll = new Given('http://127.0.0.1:9', 't')
  const rules = [{ experiment: 'e1', salt: 's', predicate: [], treatment: 1, control: 0, faults: [], delay_ms: 1 }]
  const lease = leaseOf(JSON.stringify({ version: 'v', lease_seconds: 1, rules }))
  const edge = new Edge(poll, {})
  poll.known.hold(lease, steady() + 60)
  assert.match(edge.onward('', 'd1', () => new Map()).header, /^fit=/)
  poll.known.hold(lease, steady() - 0.001)
  assert.equal(edge.onward('', 'd1', () => new Map()).header, '')
  poll.known.hold(lease, steady() + 60)
  poll.stop()
  assert.equal(edge.onward('', 'd1', () => new Map()).header, '')
})

test('lengths are drawn anew for each request, and what follows them is the same', () => {
  const edge = edgeWith({ faults: [`delay:0.1..0.9@${POINT}`] })
  const delays = new Set()
  for (let n = 0; n < 20; n++) {
    const request = { method: 'GET', url: '/titles/17', headers: { 'x-device-id': 'd1' } }
    edge(request, {}, () => {})
    const { kind, delayMs } = read(request.headers.baggage).injections.get(pointHash(POINT))
    assert.ok(kind === 'delay' && delayMs >= 100 && delayMs <= 900)
    delays.add(delayMs)
  }
  assert.ok(delays.size > 10)
})

test('whatever breaks while it decides, the request goes on, unstamped', () => {
  const faults = { get claims() { throw new Error('broken') } }
  const poll = { start() {}, known: { rules: () => ({ lease: { rules: [1], ...faults } }) } }
  for (const broken of [poll, { start() { throw new Error('broken') } }, { start() {}, known: { rules: () => null } }]) {
    const edge = new Edge(undefined, {})
    edge.poll = broken
    const request = { method: 'GET', url: '/', headers: { 'x-device-id': 'd1', baggage: 'a=b,fit=1' } }
    let went = 0
    standing(() => edge)(request, {}, () => went++)
    assert.deepEqual([went, request.headers.baggage], [1, 'a=b'])
  }
})

/** Serve a request as OpenTelemetry's instrumentation of http does: its headers are read, its span is begun. */
function served(edge, headers, around = (active) => active) {
  exporter.reset()
  const request = { method: 'GET', url: '/titles/17', headers: { ...headers } }
  const extracted = propagation.extract(context.active(), request.headers)
  const span = trace.getTracer('http').startSpan('GET', { kind: SpanKind.SERVER }, extracted)
  const within = setRPCMetadata(trace.setSpan(extracted, span), { type: RPCType.HTTP, span })
  const carrier = {}
  context.with(around(within), () => edge(request, {}, () => propagation.inject(context.active(), carrier)))
  span.end()
  return { carrier, request, attributes: exporter.getFinishedSpans()[0]?.attributes }
}

test('OpenTelemetry sends on what the edge has stamped, and nothing from outside', () => {
  const edge = edgeWith({}, { FIT_FEATURES: 'header.x-plan,cookie.ab' })
  const foreign = contextOf([['e', 'p']])
  const headers = { 'x-device-id': 'd1', 'x-plan': 'gold', baggage: `a=b,fit=${foreign}` }
  const first = served(edge, headers)
  assert.equal(read(first.carrier.baggage).experiment, 'e1')
  assert.match(first.carrier.baggage, /a=b/)
  assert.deepEqual(first.attributes, {
    'fit.edge': true, 'fit.feature.header.x-plan': 'gold', 'fit.experiment': 'e1', 'fit.arm': 'treatment',
  })
  assert.equal(served(edge, headers).attributes['fit.again'], true)
  const nobody = served(edge, { baggage: `a=b,fit=${foreign}` })
  assert.equal(nobody.carrier.baggage, 'a=b')
  assert.deepEqual(nobody.attributes, { 'fit.edge': true })
})

test('only what a known library sends carries a context, whoever has bound it to what', () => {
  const device = { 'x-device-id': 'd1' }
  for (const [library, kind, carried] of [
    ['http', SpanKind.CLIENT, true], ['kafkajs', SpanKind.PRODUCER, true], ['express', SpanKind.INTERNAL, true],
    ['amqplib', SpanKind.PRODUCER, false], ['aws-sdk', SpanKind.CLIENT, false],
  ]) {
    let before
    const carrier = {}
    served(edgeWith(), device, (within) => (before = within)) // what is bound is of before the edge
    const span = trace.getTracer(`@opentelemetry/instrumentation-${library}`).startSpan('call', { kind }, before)
    propagation.inject(trace.setSpan(before, span), carrier)
    assert.deepEqual([library, Boolean(read(carrier.baggage))], [library, carried])
  }
})

test('of much baggage the stamp is the first, where no limit cuts it off', () => {
  const baggage = Array.from({ length: 100 }, (_, n) => `a${n}=${'b'.repeat(60)}`).join(',')
  assert.match(served(edgeWith(), { 'x-device-id': 'd1', baggage }).carrier.baggage, /^fit=/)
})

test('over HTTP/2 as over HTTP/1', async () => {
  const server = createServer(before([edgeWith()], (request, response) => response.end(JSON.stringify(told(request)))))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const session = connect(`http://127.0.0.1:${server.address().port}`)
  for (const [device, experiment] of [['d1', 'e1'], ['', undefined]]) {
    const baggage = `a=b,fit=${contextOf([['e', 'p']])}`
    const asking = session.request({ ':path': '/titles/17', 'x-device-id': device, baggage })
    let text = ''
    for await (const chunk of asking.setEncoding('utf8')) text += chunk
    const answer = JSON.parse(text)
    assert.deepEqual([read(answer.baggage)?.experiment, answer.raw, answer.experiment], [experiment, true, experiment])
  }
  session.destroy()
  server.close()
})

test('the request\'s own span is marked, not one that a framework has begun inside it', () => {
  const inner = (within) => trace.setSpan(within, trace.getTracer('express').startSpan('middleware', {}, within))
  const { attributes } = served(edgeWith(), { 'x-device-id': 'd1' }, inner)
  assert.deepEqual(attributes, { 'fit.edge': true, 'fit.experiment': 'e1', 'fit.arm': 'treatment' })
})

test('a request whose span is not recorded is not stamped, for nothing would prove it', () => {
  sampled = false
  try {
    const { carrier, request } = served(edgeWith(), { 'x-device-id': 'd1' })
    assert.deepEqual([carrier, request.headers.baggage], [{}, undefined])
  } finally {
    sampled = true
  }
})
