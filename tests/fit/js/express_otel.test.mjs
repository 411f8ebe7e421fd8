// With the real Express and the real OpenTelemetry: run in a folder that has both installed.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'

import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  AlwaysOnSampler, BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import express from 'express'
import { failureContext, install } from 'ldfi-fit'

import { contextOf, FIT_KEYS } from './sign.js'

const unhooked = globalThis.fetch
const exporter = new InMemorySpanExporter()
let upstream, listening, url, point

before(async () => {
  process.env.FIT_KEYS = FIT_KEYS
  assert.equal(install('node'), true)
  upstream = createServer((request, response) => response.end('fine')).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const callee = `http://127.0.0.1:${upstream.address().port}`
  point = `node>http:GET:127.0.0.1:${upstream.address().port}/titles/*`
  const app = express()
  app.use(failureContext)
  app.get('/', async (request, response) => {
    const answer = await fetch(`${callee}/titles/17`)
    response.send(String(answer.status))
  })
  listening = app.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  url = `http://127.0.0.1:${listening.address().port}/`
})

after(() => {
  upstream.close()
  listening.close()
})

async function ask(faults, how) {
  const baggage = faults ? `fit=${contextOf(faults, how)}` : 'a=b'
  return (await unhooked(url, { headers: { baggage } })).text()
}

test('where nothing would be recorded nothing is injected', async () => {
  assert.equal(await ask([['e', point]]), '200')
})

test('a fault is proved by a span, in Express as elsewhere', async () => {
  const provider = new BasicTracerProvider({
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  })
  trace.setGlobalTracerProvider(provider)

  assert.equal(await ask([['e', point]]), '503')
  assert.equal(await ask([['e', point]], { arm: 'c' }), '200')
  assert.equal(await ask(undefined), '200')

  const told = exporter.getFinishedSpans().filter(({ name }) => name !== 'fit.mark') // which left before
  const [fired, wouldFire, ...more] = told
  assert.deepEqual(more, [])
  assert.equal(fired.kind, SpanKind.CLIENT)
  assert.equal(fired.status.code, SpanStatusCode.ERROR)
  assert.equal(fired.attributes['fit.point'], point)
  assert.equal(fired.attributes['fit.fired'], 'error')
  assert.deepEqual(fired.events.map((event) => event.name), ['fit.fault'])
  assert.equal(wouldFire.attributes['fit.would_fire'], 'error')
  assert.equal(wouldFire.attributes['fit.fired'], undefined)
})
