/** An edge in Fastify, in Koa and in plain node:http: contexts from outside go, one's own stays. */

import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { after, before as atFirst, test } from 'node:test'

import fastify from 'fastify'
import Koa from 'koa'

import { before, current, edge, failureContext, forFastify, forKoa, install, scenarioOf } from '../../index.js'
import { contextOf, FIT_KEYS } from '../support/sign.js'

const closing = []
const told = ({ headers }) => ({ baggage: headers.baggage, experiment: current()?.experiment })

async function listening(server) {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(server)
  return `http://127.0.0.1:${server.address().port}`
}

/** Name → a server with this middleware, which answers with what a handler is told. */
const SERVERS = {
  'node:http': async (middleware) => listening(createServer(
    before(middleware, (request, response) => response.end(JSON.stringify(told(request)))))),
  Fastify: async (middleware) => {
    const app = fastify()
    for (const each of middleware) app.addHook('onRequest', forFastify(each))
    app.get('/', async (request) => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      return told(request)
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return listening(app.server)
  },
  Koa: async (middleware) => {
    const app = new Koa()
    for (const each of middleware) app.use(forKoa(each))
    app.use(async (context) => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      context.body = told(context)
    })
    return listening(createServer(app.callback()))
  },
}

function ask(url, headers) {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, async (response) => {
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      resolve(JSON.parse(text))
    }).on('error', reject)
  })
}

atFirst(() => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  subscribe('fit.fault', () => {})
})
after(() => closing.forEach((server) => server.close()))

for (const [name, serve] of Object.entries(SERVERS)) {
  test(`${name}: a service reads contexts, an edge takes them out but the device's own`, async () => {
    const mine = contextOf([['e', 'p']], { experiment: scenarioOf('d1') })
    const foreign = contextOf([['e', 'p']])
    const inside = await serve([failureContext])
    assert.deepEqual(await ask(inside, { baggage: `a=b,fit=${foreign}` }),
      { baggage: `a=b,fit=${foreign}`, experiment: 'e7c1' })
    assert.deepEqual(await ask(inside, {}), {})
    const atEdge = await serve([failureContext, edge]) // also where it was read before
    assert.deepEqual(await ask(atEdge, { baggage: `a=b,fit=${foreign}` }), { baggage: 'a=b' })
    assert.deepEqual(await ask(atEdge, { baggage: `fit=${mine}`, 'x-device-id': 'd1' }),
      { baggage: `fit=${mine}`, experiment: scenarioOf('d1') })
    assert.deepEqual(await ask(atEdge, { baggage: `fit=${mine}`, 'x-device-id': 'd2' }), {})
  })
}

test('Koa hears of what goes wrong further in', async () => {
  const failed = forKoa(failureContext)({ req: { headers: {} }, res: {} }, () => Promise.reject(new Error('x')))
  await assert.rejects(failed, /x/)
})
