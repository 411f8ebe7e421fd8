/** An edge in Fastify, in Koa and in plain node:http: contexts from outside go, one's own stays. */

import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { after, before, test } from 'node:test'

import { current, edge, failureContext, forKoa, install, scenarioOf } from '../../index.js'
import { contextOf, FIT_KEYS } from '../support/sign.js'
import { ask, closeAll, serversOf } from './frameworks.js'

const told = ({ headers }) => ({ baggage: headers.baggage, experiment: current()?.experiment })

before(() => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  subscribe('fit.fault', () => {})
})
after(closeAll)

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
