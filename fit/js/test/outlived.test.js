/** A context belongs to its request: what that leaves behind is let through, and hurts nobody else. */

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'

import { failureContext, install } from '../index.js'
import { contextOf, FIT_KEYS } from './support/sign.js'

let stock, service, context
const heard = []
const listen = ({ outcome }) => heard.push(outcome)
const left = {}

/** What a page of each kind leaves behind: a promise of the status that stock answers. */
const pages = {
  timer: (ask, response) => new Promise((resolve) => {
    const look = () => response.closed ? resolve(ask()) : setTimeout(look, 1)
    setTimeout(look, 1)
  }),
  promise: async (ask, response) => {
    await once(response, 'close')
    await turn()
    return ask()
  },
  interval: (ask, response) => new Promise((resolve) => {
    const ticking = setInterval(() => {
      if (!response.closed) return
      clearInterval(ticking)
      resolve(ask())
    }, 1)
  }),
  within: (ask) => ask(),
}

before(async () => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  subscribe('fit.fault', listen)
  stock = createServer((_, response) => response.end('fine')).listen(0, '127.0.0.1')
  await once(stock, 'listening')
  const { port } = stock.address()
  context = contextOf([['e', `node>http:GET:127.0.0.1:${port}/left`]])
  service = createServer((request, response) => failureContext(request, response, async () => {
    const page = request.url.slice(1)
    const ask = () => fetch(`http://127.0.0.1:${port}/left`).then(({ status }) => status)
    left[page] = pages[page](ask, response)
    if (page === 'within') await left[page]
    response.end()
  })).listen(0, '127.0.0.1')
  await once(service, 'listening')
})
after(() => {
  unsubscribe('fit.fault', listen)
  for (const each of [stock, service]) {
    each.close()
    each.closeAllConnections()
  }
})

async function asked(page) {
  heard.length = 0
  const url = `http://127.0.0.1:${service.address().port}/${page}`
  await (await fetch(url, { headers: { baggage: `fit=${context}` } })).text()
  return left[page]
}

for (const page of ['timer', 'promise', 'interval']) {
  test(`a call by a ${page} when the request is over is let through`, async () => {
    assert.equal(await asked(page), 200)
    assert.deepEqual(heard, ['outlived'])
  })
}

test('within the request it fails as ever', async () => {
  assert.equal(await asked('within'), 503)
  assert.deepEqual(heard, ['fired'])
})
