/** What callers see of an injected failure is what they see when that really happens. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as listen } from 'node:net'
import { after, before, test } from 'node:test'

import { within } from '../../request.js'
import { verify } from '../../runtime.js'
import { CALLERS, closeAll, seen } from './callers.js'
import { injecting } from '../support/injecting.js'
import { contextOf, contextOfKinds } from '../support/sign.js'

const IMPATIENT = { patience: 150 }
const CUT = '{"why": "fault injected", "mo'
const fine = (request, response) => response.end('fine')

/** Kind → what a server does in which that really happens, and how long its caller waits. */
const REALLY = {
  reset: [(request) => request.socket.resetAndDestroy()],
  'status-404': [(request, response) => response.writeHead(404).end('fault injected')],
  'status-503': [(request, response) => response.writeHead(503).end('fault injected')],
  empty: [(request, response) => response.writeHead(200, { 'content-length': 0 }).end()],
  truncated: [(request, response) => {
    response.writeHead(200, { 'content-length': CUT.length + 35 })
    response.write(CUT, () => setTimeout(() => request.socket.destroy(), 20))
  }],
  'delay-9000': [() => {}, IMPATIENT],
}
/** Whose patience can be seen: of the others no timeout is injected. */
const SEEN_WAITING = ['node:http', 'axios', 'fetch', 'undici.request', 'undici.Pool']

const late = {} // what an impatient caller really sees
let server, url, point, nobody
let really = fine
let heard = []

before(async () => {
  injecting((said) => heard.push(said))
  server = createServer((request, response) => really(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  url = `http://127.0.0.1:${port}/titles/17`
  point = `node>http:GET:127.0.0.1:${port}/titles/*`
  const closed = listen().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  nobody = closed.address().port
  closed.close()
  await once(closed, 'close')
})

after(async () => {
  await closeAll()
  server.close()
  server.closeAllConnections()
})

function injected(caller, how, options, target = url) {
  heard = []
  const value = Array.isArray(how) ? contextOf([how]) : contextOfKinds([[how, point]])
  return within({ context: verify(value), trace: {} }, () => seen(caller, target, options))
}

for (const caller of Object.keys(CALLERS)) {
  test(`${caller}: failures are what they are when they really happen`, async () => {
    for (const [how, [reality, options]] of Object.entries(REALLY)) {
      really = reality
      const want = await seen(caller, url, options)
      really = fine
      if (options === IMPATIENT) late[caller] = want
      assert.deepEqual(await injected(caller, how, options), want, how)
      assert.deepEqual(heard, [`fired ${how.replace('status-', 'status:').replace(/-9000/, '')}`])
    }
    const want = await seen(caller, `http://127.0.0.1:${nobody}/titles/17`)
    assert.deepEqual(await injected(caller, 'refused'), want)
    const corrupt = { status: 200, body: '\xff\x00\xfefault injected\xc3(' }
    assert.deepEqual(await injected(caller, 'corrupt'), corrupt)
    assert.equal((await injected(caller, ['e', point])).status, 503)
  })

  test(`${caller}: a timeout happens to whose patience is seen, and ends then`, async () => {
    const want = late[caller]
    const visible = SEEN_WAITING.includes(caller)
    const began = Date.now()
    const got = await injected(caller, 'timeout-9000', IMPATIENT)
    assert.deepEqual(got, visible ? want : { status: 200, body: 'fine' })
    assert.deepEqual(heard, visible ? ['fired timeout'] : [])
    if (visible) assert.ok(Date.now() - began >= 140)
    assert.deepEqual(await injected(caller, 'timeout-90', IMPATIENT), { status: 200, body: 'fine' })
    assert.deepEqual(heard, [])
  })

  test(`${caller}: a delay that is outlasted goes through, and so does what is not meant`, async () => {
    const began = Date.now()
    assert.deepEqual(await injected(caller, ['d', point, '60']), { status: 200, body: 'fine' })
    assert.ok(Date.now() - began >= 55)
    assert.deepEqual(heard, ['fired delay'])
    for (const how of ['grpc-ABORTED', 'sql-lost']) {
      assert.deepEqual(await injected(caller, how), { status: 200, body: 'fine' })
    }
    assert.deepEqual(await injected(caller, ['e', `${point}/more`]), { status: 200, body: 'fine' })
    assert.deepEqual(heard, [])
  })

  test(`${caller}: of many requests at once those with a context fail, and no other`, async () => {
    const context = verify(contextOfKinds([['status-500-n2', point]]))
    const one = async (at) => {
      const statuses = []
      for (let i = 0; i < 3; i++) statuses.push((await seen(caller, url)).status)
      assert.deepEqual(statuses, at % 2 ? [500, 500, 200] : [200, 200, 200])
    }
    await Promise.all(Array.from({ length: 20 }, (_, at) =>
      within(at % 2 ? { context, trace: {} } : undefined, () => one(at))))
  })
}
