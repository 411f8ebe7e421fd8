/** node:http and node:https, where no library is needed: options, bodies, agents, sockets, spans. */

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import http, { createServer, get } from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { after, before, test } from 'node:test'

import { current, install } from '../index.js'
import { within } from '../request.js'
import { verify } from '../runtime.js'
import { contextOf, contextOfKinds, FIT_KEYS } from './support/sign.js'

let server, port, point
let heard = []
const listen = ({ outcome }) => heard.push(outcome)

before(async () => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  install('node') // again changes nothing
  subscribe('fit.fault', listen)
  server = createServer((request, response) => {
    request.resume().on('end', () => response.end('fine'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = server.address().port
  point = `http:GET:127.0.0.1:${port}/titles/*`
})
after(() => {
  server.close()
  server.closeAllConnections()
})

/** Work in the name of a request whose context says so; hits are collected anew. */
function under(value, work) {
  heard = []
  return within({ context: verify(value), trace: {} }, work)
}

function kinds(how, at = point) {
  return contextOfKinds([[how, `node>${at}`]])
}

/** Send a request, and read all of its answer. */
function ended(request, body) {
  return new Promise((resolve, reject) => {
    request.on('error', reject).on('response', (response) => {
      let length = 0
      response.on('data', (chunk) => (length += chunk.length))
      response.on('error', reject).on('end', () => resolve([response.statusCode, length]))
    })
    request.end(body)
  })
}

test('options may be given in every way, and other requests are left alone', async () => {
  const url = `http://127.0.0.1:${port}/titles/17?q=1`
  const parts = { port, path: '/titles/17' }
  for (const options of [url, new URL(url), { hostname: '127.0.0.1', ...parts }, { host: '127.0.0.1', ...parts }]) {
    for (const call of [get, http.get, http.request]) {
      const failed = await under(kinds('status-500'), () => ended(call(options)))
      assert.deepEqual([failed, heard], [[500, 14], ['fired']])
      assert.deepEqual(await ended(call(options)), [200, 4])
    }
  }
})

test('whatever agent there is, and whatever is sent', async () => {
  const keeping = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const post = point.replace('GET', 'POST')
  for (const agent of [keeping, false, undefined]) {
    const send = () => {
      const options = { agent, method: 'POST', host: '127.0.0.1', port, path: '/titles/17' }
      return ended(http.request(options), 'x'.repeat(300_000))
    }
    assert.deepEqual(await send(), [200, 4])
    assert.deepEqual(await under(kinds('error', post), send), [503, 14])
    assert.deepEqual(await under(contextOf([['d', `node>${post}`, '40']]), send), [200, 4])
    await assert.rejects(under(kinds('reset', post), send), { code: 'ECONNRESET', syscall: 'read' })
    await assert.rejects(under(kinds('truncated', post), send), { code: 'ECONNRESET', message: 'aborted' })
    assert.deepEqual(await send(), [200, 4])
  }
  keeping.destroy()
})

test('an answer without a body cannot have a wrong one', async () => {
  const head = () => ended(http.request({ method: 'HEAD', host: '127.0.0.1', port, path: '/titles/17' }))
  for (const how of ['empty', 'truncated', 'corrupt']) {
    const value = kinds(how, point.replace('GET', 'HEAD'))
    assert.deepEqual([await under(value, head), heard], [[200, 0], []])
  }
  const value = kinds('status-404', point.replace('GET', 'HEAD'))
  assert.deepEqual([await under(value, head), heard], [[404, 0], ['fired']])
})

test('a name with two addresses is refused at both, as Node tells it', async () => {
  const closed = net.createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const nobody = closed.address().port
  closed.close()
  await once(closed, 'close')
  const told = ({ name, code, message, errors = [] }) => [name, code, message, errors.map((e) => e.message)]
  const lookup = (host, options, done) => done(null, [
    { address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 },
  ])
  const call = () => ended(get({ host: 'somewhere', port: nobody, path: '/', lookup }))
    .then(() => 'answered', told)
  const really = await call()
  const injected = await under(kinds('refused', 'http:GET:somewhere/'), call)
  assert.deepEqual(injected, really)
  assert.deepEqual(heard, ['fired'])
  assert.equal(really[1], 'ECONNREFUSED')
})

test('a name does not resolve, as Node tells it, and an address needs no name', async () => {
  const nobody = 'a'.repeat(64) // longer than a label may be: no resolver asks anybody
  const told = (error) => JSON.stringify({ ...error, cause: error.cause && { ...error.cause }, said: String(error.cause ?? error) })
  const callers = {
    get: (host) => ended(get(`http://${host}:${port}/titles/17`)),
    fetch: async (host) => [(await fetch(`http://${host}:${port}/titles/17`)).status, 4],
  }
  for (const [name, call] of Object.entries(callers)) {
    const really = await call(nobody).catch(told)
    const injected = await under(kinds('unresolved', point.replace('127.0.0.1', 'localhost')), () => call('localhost').catch(told))
    assert.equal(injected.replaceAll('localhost', 'HOST'), really.replaceAll(nobody, 'HOST'), name)
    assert.match(injected, /getaddrinfo ENOTFOUND/)
    assert.deepEqual(heard, ['fired'])
    assert.deepEqual([await under(kinds('unresolved'), () => call('127.0.0.1')), heard], [[200, 4], []], name)
  }
})

test('https is the same, and the port that it does not name is its own', async () => {
  const call = () => ended(https.get('https://somewhere.invalid/titles/17'))
  const value = (how) => kinds(how, 'http:GET:somewhere.invalid/titles/*')
  assert.deepEqual(await under(value('status-418'), call), [418, 14])
  await assert.rejects(under(value('reset'), call), { code: 'ECONNRESET' })
  await assert.rejects(under(value('refused'), call), { code: 'ECONNREFUSED', port: 443 })
  await assert.rejects(call(), { code: /ENOTFOUND|EAI_AGAIN/ })
})

test('a request that is given up before anything happens leaves nothing behind', async () => {
  const value = kinds('delay-60000')
  const abandoned = under(value, () => get(`http://127.0.0.1:${port}/titles/17`))
  abandoned.on('error', () => {}).destroy()
  await new Promise((resolve) => abandoned.on('close', resolve))
  const controller = new AbortController()
  const aborted = under(value, () =>
    ended(get(`http://127.0.0.1:${port}/titles/17`, { signal: controller.signal })))
  setTimeout(() => controller.abort(), 30)
  await assert.rejects(aborted, { name: 'AbortError' })
})

test('what listens to a call runs in its caller\'s name, on whosever socket', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const url = `http://127.0.0.1:${port}/elsewhere`
  const named = (how) => new Promise((resolve) => {
    const request = get(url, { agent, ...how }, (response) => {
      const atAnswer = current()?.experiment
      response.resume().on('end', () => setImmediate(() => resolve([atAnswer, current()?.experiment])))
    })
  })
  const first = await under(kinds('error'), named) // opens the socket
  const second = await named()
  const [queued, unnamed] = await Promise.all([under(kinds('error'), named), named()])
  assert.deepEqual([first, queued], [['e7c1', 'e7c1'], ['e7c1', 'e7c1']])
  assert.deepEqual([second, unnamed], [[undefined, undefined], [undefined, undefined]])
  agent.destroy()
})

test('a socket belongs to nobody\'s request, so another\'s retry is not hit', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const dropping = createServer((request, response) => {
    if (request.url === '/drop') request.socket.resetAndDestroy()
    else response.end('fine')
  }).listen(0, '127.0.0.1')
  await once(dropping, 'listening')
  const origin = `http://127.0.0.1:${dropping.address().port}`
  const value = contextOfKinds([['error', `node>http:GET:${origin.slice(7)}/again`]])
  await under(value, () => ended(get(`${origin}/warm`, { agent })))
  const again = await new Promise((resolve, reject) => {
    const request = get(`${origin}/drop`, { agent })
    request.on('error', () => ended(get(`${origin}/again`)).then(resolve, reject))
  })
  assert.deepEqual([again, heard], [[200, 4], []])
  agent.destroy()
  dropping.close()
})

test('where nobody keeps the proof nothing is injected', async () => {
  unsubscribe('fit.fault', listen)
  try {
    const call = () => ended(get(`http://127.0.0.1:${port}/titles/17`))
    assert.deepEqual(await under(kinds('error'), call), [200, 4])
  } finally {
    subscribe('fit.fault', listen)
  }
})
