/** What this process says that it can make fail, on spans that a real SDK records. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { mock, test } from 'node:test'

import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'

import { install } from '../../index.js'
import { misses, reaches, report, VERSION } from '../../reach.js'
import { FIT_KEYS } from '../support/sign.js'

mock.timers.enable({ apis: ['setTimeout'] })
const exporter = new InMemorySpanExporter()
const http = 'a_shop_x>library:fetch-node a_shop_x>library:fit a_shop_x>library:http a_shop_x>library:undici'
const said = () => exporter.getFinishedSpans().map((span) => span.attributes['fit.reach'])

test('a report says what is hooked, once it is settled and again every five minutes', () => {
  process.env.FIT_KEYS = FIT_KEYS
  assert.equal(report(), undefined)
  install('a shop>x')
  assert.equal(report(), `1 node/${VERSION} a_shop_x>http:* ${http}`)
  mock.timers.tick(3_000) // nobody records it
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  trace.setGlobalTracerProvider(provider)
  provider.getTracer('app').startActiveSpan('request', (span) => {
    mock.timers.tick(10_000)
    span.end()
  })
  assert.deepEqual(said().filter(Boolean), [`1 node/${VERSION} a_shop_x>http:* ${http}`])
  const [reported] = exporter.getFinishedSpans().filter((span) => span.name === 'fit.reach')
  assert.equal(reported.parentSpanContext, undefined)
  mock.timers.tick(299_000)
  assert.equal(said().filter(Boolean).length, 1)
  mock.timers.tick(1_000)
  assert.equal(said().filter(Boolean).length, 2)
  reaches('db')
  mock.timers.tick(3_000)
  assert.equal(said().at(-1), `1 node/${VERSION} a_shop_x>db:* a_shop_x>http:* ${http}`)
  reaches('db')
  mock.timers.tick(3_000)
  assert.equal(said().filter(Boolean).length, 3)
})

test('libraries are called what the vectors say, once they are loaded', () => {
  const require = createRequire(import.meta.url)
  for (const name of ['@grpc/grpc-js', 'ioredis', 'kafkajs', 'pg', 'redis']) require(name)
  mock.timers.tick(300_000)
  const held = said().at(-1).split(' ').filter((each) => each.includes('>library:'))
  const { cases } = JSON.parse(readFileSync(new URL('../../../protocol/vectors/libraries.json', import.meta.url), 'utf8'))
  const mine = cases.filter((each) => each.held && ['any', 'node'].includes(each.language))
  assert.deepEqual(held, mine.map((each) => `a_shop_x>library:${each.library}`).sort())
})

test('libraries that nobody knows are named', () => {
  misses('amqplib')
  assert.match(report(), / a_shop_x>unknown:amqplib\|none$/)
})

test('the version is the package\'s', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal(VERSION, version)
})
