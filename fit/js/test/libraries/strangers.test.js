/** Calls to hosts that no context may be sent to: what arrives there, by every client that fit knows. */

import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { after, before, test } from 'node:test'

import * as grpc from '@grpc/grpc-js'
import axios from 'axios'
import got from 'got'
import kafkajs from 'kafkajs'
import nodeFetch from 'node-fetch'
import undici from 'undici'

import { hookLoaded } from '../../late.js'
import { broker } from '../support/broker.js'
import { injecting } from '../support/injecting.js'

const BAGGAGE = 'a=b,fit=x,c=d'
const closing = []
let arrived, port, streams

function tell(headers) {
  arrived = headers.baggage
}

before(async () => {
  process.env.FIT_HOSTS = '!127.0.0.1' // and localhost is one's own
  injecting(() => {})
  hookLoaded()
  subscribe('undici:request:create', ({ request }) => { // as OpenTelemetry's instrumentation does
    if (request.path === '/added') request.addHeader('baggage', BAGGAGE)
  })
  const plain = http.createServer(({ headers, url }, response) => {
    const [, to] = /^\/to\/(.*)/.exec(url) ?? []
    if (to) response.writeHead(302, { location: `http://${to}:${port}/` })
    response.end(tell(headers))
  }).listen(0)
  const streaming = http2.createServer().listen(0).on('stream', (stream, headers) => {
    tell(headers)
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '0' }, { endStream: true })
  })
  await Promise.all([plain, streaming].map((each) => once(each, 'listening')))
  for (const each of [plain, streaming]) closing.push(() => each.close(), () => each.closeAllConnections?.())
  port = plain.address().port
  streams = streaming.address().port
})
after(() => closing.reverse().forEach((close) => close()))

function sent(url, options, late = () => {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, options, (response) => response.resume().on('end', resolve)).on('error', reject)
    late(request)
    request.end()
  })
}

const headers = { Baggage: BAGGAGE }
const grpcClients = new Map()
const CALLERS = {
  'http, an object': (host) => sent(`http://${host}:${port}`, { headers }),
  'http, a list': (host) => sent(`http://${host}:${port}`, { headers: ['host', 'x', 'baggage', BAGGAGE] }),
  'http, twice': (host) => sent(`http://${host}:${port}`, { headers: { baggage: ['a=b', 'fit=x,c=d'] } }),
  'http, set later': (host) => sent(`http://${host}:${port}`, {}, (request) => {
    request.setHeader('baggage', BAGGAGE)
    request.flushHeaders()
  }),
  'http, without an agent': (host) => sent(`http://${host}:${port}`, { headers, agent: false }),
  'http, by a proxy': (host) => sent(`http://localhost:${port}`, { headers, path: `http://${host}/x` }),
  fetch: (host) => fetch(`http://${host}:${port}`, { headers }),
  'fetch, added': (host) => fetch(`http://${host}:${port}/added`),
  undici: (host) => undici.request(`http://${host}:${port}`, { headers: ['baggage', BAGGAGE] }),
  'undici, several': (host) => undici.request(`http://${host}:${port}`, { headers: { baggage: ['a=b', 'fit=x,c=d'] } }),
  'undici, its fetch': (host) => undici.fetch(`http://${host}:${port}`, { headers }),
  axios: (host) => axios.get(`http://${host}:${port}`, { headers }),
  got: (host) => got(`http://${host}:${port}`, { headers }),
  'fetch, redirected': (host) => fetch(`http://localhost:${port}/to/${host}`, { headers }),
  'axios, redirected': (host) => axios.get(`http://localhost:${port}/to/${host}`, { headers }),
  'got, redirected': (host) => got(`http://localhost:${port}/to/${host}`, { headers }),
  'node-fetch, redirected': (host) => nodeFetch(`http://localhost:${port}/to/${host}`, { headers }),
  'undici, by a proxy': (host) => undici.request(`http://${host}:${port}`, {
    headers, dispatcher: new undici.ProxyAgent({ uri: `http://localhost:${port}`, proxyTunnel: false }),
  }),
  'undici, by a proxy that is a stranger': (host) => undici.request(`http://localhost:${port}`, {
    headers, dispatcher: new undici.ProxyAgent({ uri: `http://${host}:${port}`, proxyTunnel: false }),
  }),
  'node-fetch': (host) => nodeFetch(`http://${host}:${port}`, { headers }),
  http2: async (host) => {
    const session = http2.connect(`http://${host}:${streams}`)
    closing.push(() => session.destroy())
    await once(session.request({ ':path': '/', baggage: BAGGAGE }).resume(), 'end')
  },
  'grpc-js': (host) => new Promise((resolve) => {
    const client = new grpc.Client(`${host}:${streams}`, grpc.credentials.createInsecure())
    closing.push(() => client.close())
    const metadata = new grpc.Metadata()
    metadata.set('baggage', BAGGAGE)
    client.makeUnaryRequest('/a/b', Buffer.from, String, Buffer.from('x'), metadata, resolve)
  }),
}

for (const [name, call] of Object.entries(CALLERS)) {
  test(`${name}: strangers get the rest of the baggage, and no context`, async () => {
    for (const [host, entries] of [['localhost', ['a=b', 'fit=x', 'c=d']], ['127.0.0.1', ['a=b', 'c=d']]]) {
      arrived = undefined
      await call(host)
      assert.deepEqual([host, arrived.split(',').map((each) => each.trim())], [host, entries])
    }
  })
}

test('kafkajs: nor does a broker', async () => {
  const { port: at, told, stop } = await broker('plays')
  const producer = new kafkajs.Kafka({ brokers: [`127.0.0.1:${at}`], logLevel: kafkajs.logLevel.NOTHING })
    .producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  closing.push(stop, () => producer.disconnect())
  await producer.connect()
  const message = { value: 'x', headers: { baggage: BAGGAGE, other: 'y' } }
  await producer.send({ topic: 'plays', messages: [message, { value: 'y' }] })
  const [written] = told.received.map(String)
  assert.deepEqual([written.includes('a=b,c=d'), written.includes('fit=x')], [true, false])
  assert.equal(message.headers.baggage, BAGGAGE)
})
