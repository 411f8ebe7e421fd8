/** Who sends much waits, as with a dependency that does not read; nothing piles up here. */

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'

import { request as undiciRequest } from 'undici'

import { install } from '../../index.js'
import { within } from '../../request.js'
import { verify } from '../../runtime.js'
import { contextOf, contextOfKinds, FIT_KEYS } from '../support/sign.js'

const PIECE = randomBytes(1 << 16)
const MUCH = 1000 // pieces

let server, url, point

before(async () => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  subscribe('fit.fault', () => {})
  server = createServer(async (incoming, response) => {
    const hash = createHash('sha256')
    for await (const chunk of incoming) hash.update(chunk)
    response.end(hash.digest('hex'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  url = `http://127.0.0.1:${port}/titles/17`
  point = `node>http:POST:127.0.0.1:${port}/titles/*`
})
after(() => {
  server.close()
  server.closeAllConnections()
})

/** Pieces, and how many were taken. */
function source(pieces) {
  const taken = { count: 0 }
  const generate = function* generate() {
    while (taken.count < pieces) {
      taken.count++
      yield PIECE
    }
  }
  return [Readable.from(generate(), { highWaterMark: 1 }), taken]
}

const SENDERS = {
  'node:http': async (body) => {
    const sent = request(url, { method: 'POST', timeout: 400 })
    const answered = once(sent, 'response').then(async ([response]) => {
      const text = (await response.toArray()).join('')
      return [response.statusCode, text]
    })
    await Promise.all([pipeline(body, sent), answered])
    return answered
  },
  undici: async (body, headersTimeout = 400) => {
    const { statusCode, body: answer } = await undiciRequest(url, { method: 'POST', body, headersTimeout })
    return [statusCode, await answer.text()]
  },
}

function under(value, work) {
  return within({ context: verify(value), trace: {} }, work)
}

for (const [name, send] of Object.entries(SENDERS)) {
  test(`${name}: the source of an upload that is held is not drained`, async () => {
    for (const value of [contextOf([['d', point, '5000']]), contextOfKinds([['timeout-5000', point]])]) {
      const [body, taken] = source(MUCH)
      const sending = under(value, () => send(body)).catch((error) => error)
      await pause(250)
      assert.ok(taken.count < 20, `${taken.count} pieces`)
      body.destroy(new Error('enough'))
      await sending
    }
  })

  test(`${name}: an upload that was held comes whole`, async () => {
    const hash = createHash('sha256')
    for (let at = 0; at < 200; at++) hash.update(PIECE)
    const want = [200, hash.digest('hex')]
    for (const value of [contextOf([['d', point, '60']]), contextOfKinds([['timeout-50', point]])]) {
      const [body] = source(200)
      assert.deepEqual(await under(value, () => send(body)), want)
    }
  })
}

test('an answer of ours lets the caller send to the end, and keeps nothing', async () => {
  const [body, taken] = source(MUCH)
  assert.deepEqual(await under(contextOfKinds([['status-500', point]]), () => SENDERS['node:http'](body)), [500, 'fault injected'])
  assert.equal(taken.count, MUCH)
})
