/** An edge in Fastify, in Koa and in plain node:http: contexts from outside go, one's own stays. */

import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { after, before as first, test } from 'node:test'

import { before, current, edge, failureContext, forKoa, install, scenarioOf } from '../../index.js'
import { contextOf, FIT_KEYS } from '../support/sign.js'
import { ask, closeAll, serversOf } from './frameworks.js'

const told = ({ headers }) => ({ baggage: headers.baggage, experiment: current()?.experiment })

first(() => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  subscribe('fit.fault', () => {})
})
after(closeAll)

test('handshakes come without a context from outside, once the edge is known to stand there', async () => {
  const server = createServer(before([edge], (request, response) => response.end('{}')))
    .on('upgrade', ({ headers, rawHeaders }, socket) => {
      socket.end(`HTTP/1.1 400 No\r\nx-told: ${headers.baggage} ${rawHeaders.includes('a=b')}\r\n\r\n`)
    }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}`
  await ask(url, {})
  const headers = { connection: 'upgrade', upgrade: 'websocket', baggage: `a=b,fit=${contextOf([['e', 'p']])}` }
  const [response] = await once(get(url, { headers, agent: false }), 'response')
  assert.equal(response.headers['x-told'], 'a=b true')
  server.close()
})

for (const [name, serve] of Object.entries(serversOf(told))) {
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
