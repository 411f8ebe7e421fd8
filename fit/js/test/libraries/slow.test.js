/** A body that comes slowly is to its callers as one of a server that really sends slowly. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

import * as undici from 'undici'

import { within } from '../../request.js'
import { verify } from '../../runtime.js'
import { CALLERS, closeAll, seen } from './callers.js'
import { injecting } from '../support/injecting.js'
import { contextOfKinds } from '../support/sign.js'

const TEXT = '0123456789'.repeat(100)
const fine = (request, response) => response.writeHead(200, { 'content-length': TEXT.length }).end(TEXT)

let server, url, path
let really = fine
let heard = []

before(async () => {
  injecting((said) => heard.push(said))
  server = createServer((request, response) => really(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  path = `127.0.0.1:${server.address().port}/titles`
  url = `http://${path}/17`
})

after(async () => {
  await closeAll()
  server.close()
  server.closeAllConnections()
})

/** A server that really sends so. */
function slowly(milliseconds, pieces = 10, text = TEXT) {
  return async (request, response) => {
    response.writeHead(200, { 'content-length': text.length })
    response.flushHeaders()
    for (let at = 0; at < pieces; at++) {
      await pass(milliseconds / pieces)
      response.write(text.slice((at * text.length) / pieces, ((at + 1) * text.length) / pieces))
    }
    response.end()
  }
}

function injected(how, call, { arm = 't', method = 'GET' } = {}) {
  heard = []
  const context = verify(contextOfKinds([[how, `node>http:${method}:${path}/*`]], { arm }))
  return within({ context, trace: {} }, call)
}

/** Ways to read piece by piece: (what is done with each piece, its request's options). */
const STREAMS = {
  'node:http': async (read, options) => {
    const request = http.get(url, options)
    const [response] = await once(request, 'response')
    for await (const piece of response) read(piece)
  },
  fetch: async (read, options) => {
    const answer = await fetch(url, options)
    for await (const piece of answer.body) read(piece)
  },
  'undici.request': async (read, options) => {
    const { body } = await undici.request(url, options)
    for await (const piece of body) read(piece)
  },
}

async function arrivals(stream) {
  const began = Date.now()
  const found = []
  await STREAMS[stream]((piece) => found.push([Date.now() - began, Buffer.from(piece)]))
  return { at: found.map(([at]) => at), text: Buffer.concat(found.map(([, piece]) => piece)).toString() }
}

for (const caller of Object.keys(CALLERS)) {
  test(`${caller}: the body is whole, and takes its time`, async () => {
    const ANSWERS = {
      length: fine,
      chunked: (request, response) => {
        response.write(TEXT.slice(0, 500))
        response.end(TEXT.slice(500))
      },
      gzip: (request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(TEXT)),
      early: (request, response) => {
        response.writeEarlyHints({ link: '</a.css>; rel=preload; as=style' })
        fine(request, response)
      },
      tiny: (request, response) => response.end('OK'),
    }
    for (const [name, answer] of Object.entries(ANSWERS)) {
      really = answer
      const want = await seen(caller, url)
      const began = Date.now()
      assert.deepEqual(await injected('slow-300', () => seen(caller, url)), want, name)
      const took = Date.now() - began
      assert.ok(took >= 295 && took < 1500, `${name}: ${took}`)
      assert.deepEqual(heard, ['fired slow'], name)
    }
  })

  test(`${caller}: a deadline for all of it ends it as it ends one that is really slow`, async () => {
    if (['node:http', 'axios', 'undici.request', 'undici.Pool'].includes(caller)) return // they have none
    really = slowly(2000)
    const want = await seen(caller, url, { patience: 300 })
    assert.ok(!want.status)
    really = fine
    assert.deepEqual(await injected('slow-2000', () => seen(caller, url, { patience: 300 })), want)
    assert.deepEqual(heard, ['fired slow'])
  })

  test(`${caller}: in control nothing is slow, nor without a body, and that is not claimed`, async () => {
    for (const [answer, arm, want] of [
      [fine, 'c', ['would_fire slow']],
      [(request, response) => response.writeHead(204).end(), 't', []],
      [(request, response) => response.writeHead(204).end(), 'c', []],
      [(request, response) => response.writeHead(200, { 'content-length': 0 }).end(), 't', []],
    ]) {
      really = answer
      const usual = await seen(caller, url)
      const began = Date.now()
      assert.deepEqual(await injected('slow-5000', () => seen(caller, url), { arm }), usual)
      assert.ok(Date.now() - began < 2000)
      assert.deepEqual(heard, want)
    }
    really = (request) => request.socket.resetAndDestroy()
    const broken = await seen(caller, url)
    assert.deepEqual(await injected('slow-5000', () => seen(caller, url)), broken)
    assert.deepEqual(heard, [])
  })
}

for (const stream of Object.keys(STREAMS)) {
  test(`${stream}: it comes piece by piece`, async () => {
    really = slowly(500)
    const real = await arrivals(stream)
    really = fine
    const slow = await injected('slow-500', () => arrivals(stream))
    assert.equal(slow.text, real.text)
    for (const { at } of [real, slow]) {
      assert.ok(at.length >= 8 && at[0] < 300 && at.at(-1) >= 490 && at.at(-1) < 1500, at)
    }
  })

  test(`${stream}: who gives up is rid of it, and the dependency of them`, async () => {
    const gone = new Promise((resolve) => {
      really = (request, response) => {
        response.on('close', resolve)
        response.writeHead(200, { 'content-length': 1_000_000_000 })
        const more = () => { while (!response.destroyed && response.write(Buffer.alloc(100_000))) { /* on */ } }
        response.on('drain', more)
        more()
        server.sent = () => response.socket?.bytesWritten ?? 0
      }
    })
    const ends = new AbortController()
    const began = Date.now()
    const call = injected('slow-60000', () => STREAMS[stream](() => {}, { signal: ends.signal }))
    await pass(400)
    assert.ok(server.sent() < 50_000_000, `${server.sent()} bytes were taken`)
    ends.abort()
    await assert.rejects(call)
    await gone
    assert.ok(Date.now() - began < 3000)
    assert.deepEqual(heard, ['fired slow'])
  })
}

test('a timeout for each piece ends it where it is shorter than the gap, and else does not', async () => {
  const impatient = {
    'node:http': (timeout) => new Promise((resolve, reject) => {
      const request = http.get(url, { timeout }, (response) => response.on('data', () => {}).on('end', resolve))
      request.on('timeout', () => reject(new Error('idle')))
    }),
    undici: async (bodyTimeout) => (await undici.request(url, { bodyTimeout })).body.text(),
    'undici.Agent': async (bodyTimeout) => {
      const dispatcher = new undici.Agent({ bodyTimeout })
      return (await undici.request(url, { dispatcher })).body.text()
    },
  }
  for (const [name, call] of Object.entries(impatient)) {
    for (const [milliseconds, ends] of [[1200, true], [5000, false]]) {
      const outcome = () => call(milliseconds).then(() => 'whole', ({ code, message }) => [code, message])
      really = slowly(5000, 2, 'OK')
      const real = outcome()
      await once(server, 'request')
      really = (request, response) => response.end('OK')
      const slow = injected('slow-5000', outcome)
      assert.deepEqual(await slow, await real, name)
      assert.equal(await real === 'whole', !ends, name)
    }
  }
})

test('an agent has its connection back', async () => {
  really = fine
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const ask = () => new Promise((resolve, reject) => {
    const request = http.get(url, { agent }, (response) => {
      response.on('data', () => {}).on('end', () => resolve(response.statusCode))
    })
    request.on('error', reject)
  })
  for (let i = 0; i < 3; i++) {
    assert.equal(await injected('slow-100', ask), 200)
    assert.equal(await ask(), 200)
  }
  agent.destroy()
})

test('only the first calls are slow', async () => {
  really = fine
  const took = []
  await injected('slow-300-n1', async () => {
    for (let i = 0; i < 2; i++) {
      const began = Date.now()
      assert.equal((await seen('fetch', url)).status, 200)
      took.push(Date.now() - began)
    }
  })
  assert.ok(took[0] >= 295 && took[1] < 250, took)
  assert.deepEqual(heard, ['fired slow', 'let_through slow'])
})
