/**
 * Edges with the real instrumentation of their framework loaded, automatic and by hand: what counts is what the next
 * service is told, and not what stands in a header object.
 */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request as send } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { values } from '../../baggage.js'
import { decode } from '../../context.js'
import { Keys, scenarioOf } from '../../index.js'
import { contextOf, FIT_KEYS } from '../support/sign.js'

const HERE = fileURLToPath(new URL('../support/', import.meta.url))
const TRACING = {
  automatic: ['--import', join(HERE, '../../register.js'), '--require', '@opentelemetry/auto-instrumentations-node/register'],
  'by hand': ['--require', join(HERE, 'tracing.cjs')],
}
const RULE = {
  experiment: 'e1', salt: 's', predicate: [{ feature: 'route', value: '/titles/*', negated: false }], treatment: 1,
  control: 0, delay_ms: 1000, faults: ['refused@api>http:GET:ratings/titles/*'], members: null, yields_to: [],
}
const folder = mkdtempSync(join(tmpdir(), 'fit-edge-'))
const closing = [() => rmSync(folder, { recursive: true })]
let next, nextGrpc, plane

async function listening(handler) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => server.closeAllConnections(), () => server.close())
  return `http://127.0.0.1:${server.address().port}`
}

before(async () => {
  next = await listening(({ headers: { traceparent }, headersDistinct: { baggage = [] } }, response) => {
    response.end(JSON.stringify({ baggage, traceparent }))
  })
  const streaming = createHttp2Server().listen(0, '127.0.0.1').on('stream', (stream, { baggage = '', traceparent }) => {
    const told = JSON.stringify({ baggage: [baggage], traceparent })
    stream.respond({ 'content-type': 'application/grpc', 'grpc-status': '0', 'x-told': told }, { endStream: true })
  })
  await once(streaming, 'listening')
  closing.push(() => streaming.close())
  nextGrpc = `127.0.0.1:${streaming.address().port}`
  plane = await listening((request, response) => {
    const { searchParams } = new URL(request.url, 'http://plane')
    if (request.method === 'POST') return request.resume().on('end', () => response.end('{}')) // spans
    const wait = searchParams.get('version') === 'v' ? Number(searchParams.get('wait')) : 0
    setTimeout(() => {
      response.end(JSON.stringify({ version: 'v', lease_seconds: 30, rules: [RULE] }))
    }, 1000 * wait).unref()
  })
})
after(() => closing.reverse().forEach((close) => close()))

/** Start an edge in a framework; how to ask it. */
async function front(framework, tracing) {
  const env = {
    ...process.env, FIT_KEYS, LDFI_URL: plane, LDFI_TOKEN: 't', NEXT: next, NEXT_GRPC: nextGrpc, OTEL_SERVICE_NAME: 'api',
    OTEL_EXPORTER_OTLP_ENDPOINT: plane, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none',
    OTEL_NODE_RESOURCE_DETECTORS: 'none', FIT_HALT_FILE: join(folder, `halt ${framework} ${tracing}`),
  }
  const child = spawn(process.execPath, [...TRACING[tracing], join(HERE, 'front.js'), framework], {
    env, stdio: ['ignore', 'pipe', 'inherit'], cwd: join(HERE, '../..'),
  })
  closing.push(() => child.kill('SIGKILL')) // OpenTelemetry would wait for its exporters
  const [port] = await once(child.stdout.setEncoding('utf8'), 'data')
  const ask = (way, device, baggage = [], trailer) => new Promise((resolve, reject) => {
    const headers = { 'x-way': way, 'content-type': 'text/plain', 'x-device-id': device, baggage, ...(trailer && { trailer: 'baggage' }) }
    const options = { port: Number(port), path: '/titles/17', method: trailer ? 'POST' : 'GET', headers, agent: false }
    const asking = send(options, async (response) => {
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      resolve(JSON.parse(text))
    }).on('error', reject)
    if (trailer) {
      asking.write('x')
      asking.addTrailers({ baggage: trailer })
    }
    asking.end()
  })
  return { ask, halt: () => writeFileSync(env.FIT_HALT_FILE, '') }
}

/** The contexts that the next service was told. */
const contexts = ({ baggage }) => baggage.flatMap(values).map((value) =>
  decode(Keys.parse(FIT_KEYS), value, Date.now() / 1000).experiment)
const others = ({ baggage }) => baggage.join(',').split(',').filter((entry) => !values(entry).length).join(',')

/** Wait until something holds; a machine may have much to do. */
async function eventually(holds) {
  for (const deadline = Date.now() + 20_000; !await holds(); await pause(20)) assert.ok(Date.now() < deadline)
}

const WAYS = ['http', 'fetch', 'undici', 'end', 'timer', 'forwarded', 'grpc']
/** Of another device, for what the edge itself asks: an edge that obeyed it would have no answer. */
const foreign = () => contextOf([['e', `api>http:GET:${next.slice('http://'.length)}/titles/*`]], {
  experiment: scenarioOf('another'),
})
const forms = () => [
  [`a=b,fit=${foreign()}`], ['a=b', `fit=${foreign()}`], [`%66it=${foreign()}`, 'a=b'],
  [`a=b,fit=${foreign()},fit=${foreign()}`],
]

for (const framework of ['http', 'express', 'fastify', 'koa', 'nest']) {
  for (const tracing of Object.keys(TRACING)) {
    test(`${framework}, traced ${tracing}`, async (suite) => {
      const { ask, halt } = await front(framework, tracing)
      await suite.test('contexts of another device do not arrive, the rest does', async () => {
        for (const way of [...WAYS, 'copied', ...(framework === 'express' ? ['early'] : [])]) {
          for (const form of forms()) {
            const told = await ask(way, '', form)
            assert.deepEqual([way, contexts(told), others(told).includes('a=b')], [way, [], true])
          }
        }
      })
      await suite.test('nor do they in trailers', async () => {
        assert.deepEqual(contexts(await ask('trailers', '', [], `fit=${foreign()}`)), [])
      })
      await suite.test('a device\'s own arrives, and nothing else', async () => {
        const own = scenarioOf('mine')
        const form = [`fit=${foreign()}`, `a=b,fit=${contextOf([['e', 'p']], { experiment: own })}`]
        for (const way of WAYS) assert.deepEqual([way, contexts(await ask(way, 'mine', form))], [way, [own]])
      })
      await suite.test('what is stamped arrives so, and sampled', async () => {
        await eventually(async () => contexts(await ask('http', 'd0')).length) // it holds rules
        let arrived = 0
        for (let n = 0; n < 100; n++) {
          const told = await ask(WAYS[n % WAYS.length], `d${n}`, n % 2 ? [`a=b,fit=${foreign()}`] : [])
          const [experiment, ...more] = contexts(told)
          if (experiment === 'e1' && !more.length && told.traceparent.endsWith('-01')) arrived += 1
        }
        assert.equal(arrived, 100)
      })
      await suite.test('a call that begins when its request is over carries nothing', async () => {
        await ask('later', 'd1')
        assert.deepEqual(contexts(await ask('left', '')), [])
      })
      await suite.test('halted, it stamps nothing and strips on', async () => {
        halt()
        await eventually(async () => !contexts(await ask('http', 'd1')).length)
        for (const way of WAYS) {
          for (const form of forms()) assert.deepEqual([way, contexts(await ask(way, 'd1', form))], [way, []])
        }
      })
    })
  }
}
