/** A call that waits, or of which it is not known yet what becomes of it, is still its caller's call. */

import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import http, { createServer } from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'

import * as undici from 'undici'

import { install } from '../../index.js'
import { within } from '../../request.js'
import { verify } from '../../runtime.js'
import { selfSigned } from '../support/certificate.js'
import { contextOf, contextOfKinds, FIT_KEYS } from '../support/sign.js'

const CERTIFICATE = selfSigned('localhost')

let plain, secure
let connections = 0
let heard = []

before(async () => {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  subscribe('fit.fault', ({ outcome }) => heard.push(outcome))
  const fine = (request, response) => request.resume().on('end', () => response.end('fine'))
  plain = createServer(fine).on('connection', () => connections++).listen(0, '127.0.0.1')
  secure = https.createServer(CERTIFICATE, fine).listen(0, '127.0.0.1')
  await Promise.all([once(plain, 'listening'), once(secure, 'listening')])
})
after(() => {
  for (const server of [plain, secure]) {
    server.close()
    server.closeAllConnections()
  }
})

/** Work in the name of a request under this fault; hits are collected anew. */
function under(how, server, work, { arm = 't', method = 'GET' } = {}) {
  heard = []
  const point = `node>http:${method}:127.0.0.1:${server.address().port}/titles/*`
  const value = how.startsWith('delay-')
    ? contextOf([['d', point, how.slice('delay-'.length)]], { arm })
    : contextOfKinds([[how, point]], { arm })
  return within({ context: verify(value), trace: {} }, work)
}

/** What must not differ from a call without a context: [fault, arm, what is told of it]. */
const UNHARMED = [
  ['timeout-300', 't', []],
  ['timeout-300', 'c', []],
  ['delay-30', 'c', ['would_fire']],
  ['delay-30', 't', ['fired']],
]

function call(options, look = () => undefined) {
  const { port } = (options.server ?? plain).address()
  const { request } = options.server === secure ? https : http
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/titles/17', ...options }, (response) => {
      const { socket } = response
      const atAnswer = look(socket)
      const kept = options.agent?.keepAlive // else the socket says nothing any more
      response.resume().on('end', () => setImmediate(() => resolve([atAnswer, kept && look(socket)])))
    })
    sent.on('error', reject)
    options.prepare?.(sent)
    sent.end()
  })
}

/** All that callers can ask of a socket of TLS and of where it leads; ports of ours differ every time. */
function told(socket) {
  return {
    authorized: socket.authorized,
    error: String(socket.authorizationError),
    encrypted: socket.encrypted,
    subject: socket.getPeerCertificate().subject?.CN,
    fingerprint: socket.getPeerCertificate(true).fingerprint256,
    x509: socket.getPeerX509Certificate?.()?.subject,
    protocol: socket.getProtocol(),
    cipher: socket.getCipher()?.name,
    reused: socket.isSessionReused(),
    finished: socket.getFinished()?.length > 0,
    alpn: socket.alpnProtocol,
    servername: socket.servername,
    connecting: [socket.connecting, socket.secureConnecting],
    remote: [socket.remoteAddress, socket.remotePort, socket.remoteFamily],
    local: [socket.localAddress, typeof socket.localPort, socket.localFamily, socket.address().address],
    counted: [socket.bytesRead > 0, socket.bytesWritten > 0],
  }
}

test('what callers of https look at is the dependency\'s own, whether anything happens or not', async () => {
  for (const trusted of [{ rejectUnauthorized: false }, { ca: CERTIFICATE.cert, servername: 'localhost' }]) {
    for (const keepAlive of [false, true]) {
      const agent = () => new https.Agent({ keepAlive, maxCachedSessions: 0 })
      const options = () => ({ server: secure, agent: agent(), ...trusted })
      const [want, later] = await call(options(), told)
      assert.deepEqual([want.authorized, want.subject], ['ca' in trusted, 'localhost'])
      for (const [how, arm, outcomes] of UNHARMED) {
        const seen = await under(how, secure, () => call(options(), told), { arm })
        assert.deepEqual(seen[0], want, `${how} ${arm}`)
        assert.deepEqual(seen[1], later, `${how} ${arm}, afterwards`)
        assert.deepEqual(heard, outcomes)
      }
    }
  }
})

test('a certificate that the application turns away gets no request', async () => {
  let reached = 0
  const wary = https.createServer(CERTIFICATE, (request, response) => {
    reached++
    response.end('fine')
  }).listen(0, '127.0.0.1')
  await once(wary, 'listening')
  const pinned = {
    host: '127.0.0.1', port: wary.address().port, rejectUnauthorized: false,
    prepare: (request) => request.on('socket', (socket) => {
      const check = () => socket.authorized || request.destroy(new Error('not ours'))
      if (socket.connecting) socket.once('secureConnect', check)
      else check()
    }),
  }
  for (const [how, arm] of UNHARMED) {
    await assert.rejects(under(how, wary, () => call({ ...pinned, server: secure, port: wary.address().port }), { arm }),
      { message: 'not ours' })
  }
  await assert.rejects(under('timeout-300', wary, () => call({ server: secure, port: wary.address().port })),
    { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  assert.equal(reached, 0)
  wary.close()
})

test('an answer of ours does not claim that somebody vouched for it', async () => {
  const look = (socket) => [socket.encrypted, socket.authorized, socket.getPeerCertificate(), socket.getProtocol()]
  const [seen] = await under('status-500', secure, () => call({ server: secure }, look))
  assert.deepEqual([seen, heard], [[true, false, {}, null], ['fired']])
})

test('the agent\'s bounds hold, and its connections serve again', async () => {
  const twenty = async (scheduled) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 2 })
    connections = 0
    const calls = () => Promise.all(Array.from({ length: 10 }, () => call({ agent, ...scheduled })))
    await calls()
    await calls()
    const kept = Object.values(agent.freeSockets).flat().length
    agent.destroy()
    return [connections, kept]
  }
  assert.deepEqual(await twenty(), [2, 2])
  for (const [how, arm, outcomes] of UNHARMED) {
    for (const scheduled of [{}, { timeout: 5000 }]) {
      assert.deepEqual(await under(how, plain, () => twenty(scheduled), { arm }), [2, 2], `${how} ${arm}`)
      assert.deepEqual([...new Set(heard)], outcomes)
    }
  }
})

test('a call given up in the agent\'s queue takes nobody\'s place', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  await under('timeout-300', plain, async () => {
    const first = call({ agent })
    const abandoned = call({ agent, prepare: (request) => setImmediate(() => request.destroy(new Error('enough'))) })
    const last = call({ agent })
    await assert.rejects(abandoned, { message: 'enough' })
    await Promise.all([first, last])
  })
  assert.equal(Object.values(agent.sockets).flat().length, 0)
  agent.destroy()
})

test('an agent\'s own timeout is told to a call that goes on; no fault is made of it', async () => {
  const silent = net.createServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const agent = new http.Agent({ timeout: 120 })
  const options = {
    agent, port: silent.address().port,
    prepare: (request) => request.on('timeout', () => request.destroy(new Error('late'))),
  }
  await assert.rejects(call(options), { message: 'late' })
  for (const [how, outcomes] of [['timeout-50', []], ['timeout-9000', []], ['delay-30', ['fired']]]) {
    await assert.rejects(under(how, silent, () => call(options)), { message: 'late' })
    assert.deepEqual(heard, outcomes)
  }
  silent.close()
})

test('what the agent cannot do is the call\'s failure, and nobody else\'s', async () => {
  const lookup = 'no function'
  assert.throws(() => http.get({ host: 'somewhere', lookup }), { code: 'ERR_INVALID_ARG_TYPE' })
  const agent = new http.Agent()
  agent.createConnection = () => {
    throw new Error('no way out')
  }
  for (const how of ['timeout-300', 'delay-30']) {
    await assert.rejects(under(how, plain, () => call({ agent })), { message: 'no way out' })
  }
})


test('undici over TLS: a call that waits is answered by who is vouched for, and no other', async () => {
  const url = `https://127.0.0.1:${secure.address().port}/titles/17`
  for (const how of ['delay-30', 'timeout-300']) {
    const trusting = new undici.Agent({ connect: { ca: CERTIFICATE.cert, servername: 'localhost' } })
    const { statusCode, body } = await under(how, secure, () => undici.request(url, { dispatcher: trusting }))
    assert.deepEqual([statusCode, await body.text()], [200, 'fine'])
    const wary = new undici.Agent()
    await assert.rejects(under(how, secure, () => undici.request(url, { dispatcher: wary })),
      { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    await Promise.all([trusting.close(), wary.close()])
  }
})

test('a connection that is upgraded is its caller\'s, and the agent\'s no more', async () => {
  const echo = createServer().on('upgrade', (request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
    socket.pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(echo, 'listening')
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  for (const [how, arm] of UNHARMED) {
    const options = { agent, port: echo.address().port, path: '/titles/17', host: '127.0.0.1' }
    const headers = { connection: 'upgrade', upgrade: 'echo' }
    const [, socket] = await under(how, echo, () => once(http.get({ ...options, headers }), 'upgrade'), { arm })
    socket.write('hello')
    assert.equal(String((await once(socket, 'data'))[0]), 'hello')
    assert.equal(Object.values(agent.sockets).flat().length, 0, `${how} ${arm}`)
    socket.destroy()
  }
  echo.close()
})

test('who uploads for long is not idle', async () => {
  for (const how of ['timeout-100', 'delay-30']) {
    const answered = await under(how, plain, () => new Promise((resolve, reject) => {
      const { port } = plain.address()
      const sent = http.request({ port, host: '127.0.0.1', method: 'POST', path: '/titles/17', timeout: 400 })
      sent.on('timeout', () => sent.destroy(new Error('late'))).on('error', reject)
      sent.on('response', (response) => resolve(response.resume().statusCode))
      Readable.from(slowly(), { highWaterMark: 1 }).pipe(sent)
    }), { method: 'POST' })
    assert.equal(answered, 200)
  }
})

/** For some 800 ms. */
async function* slowly() {
  for (let at = 0; at < 20; at++) {
    await pause(40)
    yield 'piece'
  }
}
