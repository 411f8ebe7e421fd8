/** A context belongs to its request: what that leaves behind is let through, and hurts nobody else. */

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'

import { failureContext, forKafkajs, install } from '../index.js'
import { contextOf, FIT_KEYS } from './support/sign.js'

let stock, service, streams, context
const heard = []
const listen = ({ outcome }) => heard.push(outcome)
const left = {}
const WAITING = 5
const flight = { waiting: 0 }

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
  batch: (ask, response) => new Promise((resolve) => { // what was gathered in its name is sent at once, later
    const gathered = [ask, ask]
    const flush = () => response.closed ? resolve(Promise.all(gathered.map((each) => each()))) : setImmediate(flush)
    setImmediate(flush)
  }),
  answered: (ask, stream, request, response) => { // work that nobody waits for
    response.end()
    return ask()
  },
  finished: (ask, stream, request, response) => new Promise((resolve) => {
    response.on('finish', () => resolve(ask())).end()
  }),
  within: (ask) => ask(),
  shared: (ask) => { // a single flight: the first asks for all who wait with it
    flight.all ??= new Promise((resolve) => { flight.ready = resolve }).then(ask)
    if (++flight.waiting === WAITING) flight.ready()
    return flight.all
  },
  listener: (ask, response, request) => new Promise((resolve) => { // its body is read by the connection's events
    request.on('end', () => resolve(ask())).resume()
  }),
}

const callers = {
  fetch: (url) => fetch(url).then(({ status }) => status),
  http: (url) => new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => resolve(response.resume().statusCode)).on('error', reject)
  }),
}

before(async () => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  subscribe('fit.fault', listen)
  stock = createServer((_, response) => response.end('fine')).listen(0, '127.0.0.1')
  await once(stock, 'listening')
  const { port } = stock.address()
  context = contextOf([['e', `node>http:GET:127.0.0.1:${port}/left`]])
  const serve = (request, response) => failureContext(request, response, async () => {
    const [, page, caller] = request.url.split('/')
    const ask = () => callers[caller](`http://127.0.0.1:${port}/left`)
    left[page] = pages[page](ask, response.stream ?? response, request, response)
    const waits = ['within', 'listener', 'shared'].includes(page)
    response.end(waits ? String(await left[page]) : '')
  })
  service = createServer(serve).listen(0, '127.0.0.1')
  await once(service, 'listening')
  streams = createHttp2Server(serve).listen(0, '127.0.0.1')
  await once(streams, 'listening')
})
after(() => {
  unsubscribe('fit.fault', listen)
  for (const each of [stock, service, streams]) {
    each.close()
    each.closeAllConnections?.()
  }
})

const over = {
  'HTTP/1': async (path) => {
    const url = `http://127.0.0.1:${service.address().port}${path}`
    await (await fetch(url, { headers: { baggage: `fit=${context}` } })).text()
  },
  'HTTP/2': async (path) => {
    const session = connect(`http://127.0.0.1:${streams.address().port}`)
    await once(session.request({ ':path': path, baggage: `fit=${context}` }).resume(), 'end')
    session.destroy()
  },
}

async function asked(page, caller, protocol) {
  heard.length = 0
  await over[protocol](`/${page}/${caller}`)
  return [await left[page]].flat()
}

for (const protocol of Object.keys(over)) {
  for (const caller of Object.keys(callers)) {
    for (const page of ['timer', 'promise', 'interval', 'batch', 'answered', 'finished']) {
      test(`a call of ${caller} by a ${page} when the request over ${protocol} is over is let through`, async () => {
        const seen = await asked(page, caller, protocol)
        assert.deepEqual(seen, seen.map(() => 200))
        assert.deepEqual(heard, seen.map(() => 'outlived'))
      })
    }
    for (const page of ['within', 'listener']) {
      test(`${page} of the request over ${protocol} it fails as ever, by ${caller}`, async () => {
        assert.deepEqual([await asked(page, caller, protocol), heard], [[503], ['fired']])
      })
    }
  }
}

test('who waits for a call of a treated request fails with it, and is not of the experiment', async () => {
  heard.length = 0
  const url = `http://127.0.0.1:${service.address().port}/shared/fetch`
  const first = fetch(url, { headers: { baggage: `fit=${context}` } })
  while (flight.waiting === 0) await turn()
  const others = Array.from({ length: WAITING - 1 }, () => fetch(url))
  const answers = await Promise.all([first, ...others].map(async (each) => (await each).text()))
  assert.deepEqual([answers, heard], [Array(WAITING).fill('503'), ['fired']])
})

test('what a message is consumed for is over when its handler is', async () => {
  const ask = () => fetch(`http://127.0.0.1:${stock.address().port}/left`).then(({ status }) => status)
  let later
  const consume = forKafkajs(async ({ fails }) => {
    const status = await ask()
    later = turn().then(turn).then(ask)
    if (fails) throw new Error('not consumed')
    return status
  })
  for (const fails of [false, true]) {
    heard.length = 0
    const consumed = consume({ message: { headers: { baggage: Buffer.from(`fit=${context}`) } }, fails })
    await (fails ? assert.rejects(consumed) : consumed.then((status) => assert.equal(status, 503)))
    assert.deepEqual([await later, heard], [200, ['fired', 'outlived']])
  }
})
