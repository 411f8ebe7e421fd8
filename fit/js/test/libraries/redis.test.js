/** node-redis and ioredis against real servers: what callers see of a failure is what really happens. */

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { Redis } from 'ioredis'
import { createClient, createClientPool } from 'redis'

import { current } from '../../index.js'
import { hookLoaded } from '../../late.js'
import { hookRedis } from '../../redis.js'
import { within } from '../../request.js'
import { verify } from '../../runtime.js'
import { injecting } from '../support/injecting.js'
import { contextOf, contextOfKinds } from '../support/sign.js'
import { between, freePort, redis, without } from '../support/servers.js'

const skip = without('redis-server')
const closing = []
let port, nobody, heard = []

before(async () => {
  if (skip) return
  injecting((said) => heard.push(said))
  hookLoaded()
  hookLoaded() // again changes nothing
  nobody = await freePort()
  port = await started('--enable-debug-command', 'yes')
})
after(async () => {
  for (const close of closing.reverse()) await close()
})

async function started(...words) {
  const server = await redis(...words)
  closing.push(server.stop)
  return server.port
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const ignore = () => {}

/** Name → (port, options) → a client that has get, set and close. */
const CLIENTS = {
  'node-redis': async (at, { socket, ...options } = {}) => {
    const client = createClient({ socket: { host: '127.0.0.1', port: at, ...socket }, ...options })
    client.on('error', ignore)
    await client.connect()
    return { get: (key) => client.get(key), set: (key, value) => client.set(key, value), close: () => client.destroy() }
  },
  ioredis: async (at, options) => {
    const client = new Redis({ host: '127.0.0.1', port: at, retryStrategy: null, enableReadyCheck: false, ...options })
    client.on('error', ignore)
    await new Promise((resolve) => client.once('ready', resolve).once('end', resolve))
    return { get: (key) => client.get(key), set: (key, value) => client.set(key, value), close: () => client.disconnect() }
  },
}

function described(error) {
  if (!(error instanceof Error)) return { answer: error }
  const { name, message, code, errno, syscall, command } = error
  return { kind: error.constructor.name, name, message, code, errno, syscall, command }
}

const seen = (work) => work().then(described, described)
const point = (verb, at = port) => `node>db:${verb}:127.0.0.1:${at}`
const kinds = (how, verb = 'SET', options) => contextOfKinds([[how, point(verb)]], options)

function under(value, work) {
  heard = []
  return within({ context: verify(value), trace: {} }, work)
}

async function using(name, at, options, work) {
  const client = await CLIENTS[name](at, options)
  try {
    return await work(client)
  } finally {
    client.close()
  }
}

const set = (client) => seen(() => client.set('a', '1'))

/** A server with keys that it takes its time to load; and how to make it forget them. */
async function loading() {
  const words = ['--enable-debug-command', 'yes', '--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024']
  const at = await started(...words)
  const client = await CLIENTS.ioredis(at)
  client.close()
  const plain = new Redis({ host: '127.0.0.1', port: at })
  closing.push(() => plain.disconnect())
  await plain.call('DEBUG', 'POPULATE', '2000')
  plain.call('DEBUG', 'RELOAD').catch(ignore)
  await pause(200)
  return at
}

for (const name of Object.keys(CLIENTS)) {
  test(`${name}: what a server says that is a replica, or loads`, { skip }, async () => {
    const replica = await started('--replicaof', '127.0.0.1', String(nobody))
    const states = { readonly: replica, loading: await loading() }
    for (const [how, at] of Object.entries(states)) {
      const want = await using(name, at, {}, set)
      assert.match(want.message, new RegExp(`^${how.toUpperCase()} `))
      const got = await using(name, port, {}, (client) => under(kinds(`redis-${how}`), () => set(client)))
      assert.deepEqual(got, want)
      assert.deepEqual(heard, [`fired redis:${how}`])
    }
  })

  test(`${name}: a connection that ends, or is torn down, while all others go on`, { skip }, async () => {
    const proxy = await between(port)
    closing.push(proxy.stop)
    const breaking = { 'redis-lost': (socket) => socket.end(), reset: (socket) => socket.resetAndDestroy() }
    for (const [how, breaks] of Object.entries(breaking)) {
      const want = await using(name, proxy.port, {}, async (client) => {
        for (const each of proxy.sockets) each.unpipe()
        const waits = set(client)
        await pause(20)
        for (const each of proxy.sockets) breaks(each)
        return waits
      })
      await using(name, port, {}, async (client) => {
        const got = await under(kinds(how), () => set(client))
        assert.deepEqual([got, heard], [want, [`fired ${how.replace('-', ':')}`]], how)
        assert.deepEqual(await set(client), { answer: 'OK' })
        assert.deepEqual(await under(contextOf([['e', point('SET')]]), () => set(client)),
          how === 'reset' && name === 'node-redis' ? { ...want, ...GONE } : want)
      })
    }
  })

  test(`${name}: a delay, the control group, the first calls only, and what it cannot have`, { skip }, async () => {
    await using(name, port, {}, async (client) => {
      const began = Date.now()
      assert.deepEqual(await under(contextOf([['d', point('SET'), '60']]), () => set(client)), { answer: 'OK' })
      assert.ok(Date.now() - began >= 55)
      const control = kinds('redis-readonly', 'SET', { arm: 'c' })
      assert.deepEqual([await under(control, () => set(client)), heard], [{ answer: 'OK' }, ['would_fire redis:readonly']])
      const answers = await under(kinds('redis-readonly-n2'), async () =>
        [await set(client), await set(client), await set(client)])
      assert.deepEqual(answers.map(({ answer }) => answer), [undefined, undefined, 'OK'])
      for (const how of ['status-500', 'sql-lost', 'timeout-9000', 'empty']) {
        assert.deepEqual([await under(kinds(how), () => set(client)), heard], [{ answer: 'OK' }, []])
      }
      assert.deepEqual(await under(kinds('redis-readonly', 'GET'), () => set(client)), { answer: 'OK' })
    })
  })

  test(`${name}: of many requests on one connection those with a context fail, and no other`, { skip }, async () => {
    const context = verify(kinds('redis-loading'))
    await using(name, port, {}, (client) => Promise.all(Array.from({ length: 20 }, (_, at) =>
      within(at % 2 ? { context, trace: {} } : undefined, async () => {
        for (let i = 0; i < 3; i++) assert.equal((await set(client)).answer, at % 2 ? undefined : 'OK')
        assert.equal(current()?.experiment, at % 2 ? 'e7c1' : undefined)
      }))))
  })
}

const GONE = {
  kind: 'SocketClosedUnexpectedlyError', name: 'Error', message: 'Socket closed unexpectedly',
  code: undefined, errno: undefined, syscall: undefined,
}

test('node-redis: of an older one no client is made, for that would connect', () => {
  hookRedis({ createClient: () => assert.fail('made a client') })
})

test('node-redis: a client that does not wait says that it is offline', { skip }, async () => {
  const options = { disableOfflineQueue: true, socket: { reconnectStrategy: () => 10_000 } }
  const proxy = await between(port)
  const want = await using('node-redis', proxy.port, options, async (client) => {
    proxy.stop()
    await pause(50)
    return set(client)
  })
  const got = await using('node-redis', port, options, (client) => under(kinds('refused'), () => set(client)))
  assert.deepEqual([got, heard], [want, ['fired refused']])
  const patient = await using('node-redis', port, {}, (client) => under(kinds('refused'), () => set(client)))
  assert.deepEqual([patient, heard], [{ answer: 'OK' }, []]) // it would wait for ever
})

test('node-redis: a pool works for each caller in its own name', { skip }, async () => {
  const pool = createClientPool({ socket: { host: '127.0.0.1', port } }, { minimum: 1, maximum: 2 })
  pool.on('error', ignore)
  await pool.connect()
  const context = verify(kinds('redis-loading'))
  await Promise.all(Array.from({ length: 20 }, (_, at) =>
    within(at % 2 ? { context, trace: {} } : undefined, async () => {
      for (let i = 0; i < 3; i++) {
        assert.equal((await seen(() => pool.set('a', '1'))).answer, at % 2 ? undefined : 'OK')
      }
    })))
  await pool.close()
})

test('ioredis: what is seen of a server that is gone depends on what the client does then', { skip }, async () => {
  const retryStrategy = () => 1
  const ways = [
    { retryStrategy, maxRetriesPerRequest: 2 },
    { retryStrategy, maxRetriesPerRequest: 0 },
    { retryStrategy: null },
    { retryStrategy, enableOfflineQueue: false },
  ]
  for (const options of ways) {
    const want = await goneFor(options)
    for (const how of ['refused', 'error']) {
      const got = await using('ioredis', port, options, (client) => under(kinds(how), () => set(client)))
      assert.deepEqual([got, heard], [want, [`fired ${how}`]])
    }
  }
  const patient = { retryStrategy, maxRetriesPerRequest: null }
  for (const how of ['refused', 'redis-lost', 'reset']) {
    const got = await using('ioredis', port, patient, (client) => under(kinds(how), () => set(client)))
    assert.deepEqual([got, heard], [{ answer: 'OK' }, []])
  }
})

async function goneFor(options) {
  const client = new Redis({ host: '127.0.0.1', port: nobody, lazyConnect: true, ...options })
  client.on('error', ignore)
  client.connect().catch(ignore)
  const want = await set(client)
  client.disconnect()
  return want
}

test('ioredis: a command\'s timeout is over as when nobody answers', { skip }, async () => {
  const options = { commandTimeout: 80 }
  const proxy = await between(port)
  closing.push(proxy.stop)
  const want = await using('ioredis', proxy.port, options, (client) => {
    for (const each of proxy.sockets) each.unpipe()
    return set(client)
  })
  for (const value of [kinds('timeout-9000'), contextOf([['d', point('SET'), '9000']])]) {
    const got = await using('ioredis', port, options, (client) => under(value, () => set(client)))
    assert.deepEqual(got, want)
  }
  assert.deepEqual(heard, ['fired delay'])
})

test('ioredis: pipelines and transactions are let through, and so is who decides about reconnecting', { skip }, async () => {
  const client = new Redis({ host: '127.0.0.1', port })
  const many = [client.pipeline(), client.multi()]
  for (const each of many) {
    const answers = await under(kinds('redis-readonly'), () => each.set('a', '1').exec())
    assert.deepEqual([answers, heard], [[[null, 'OK']], []])
  }
  client.disconnect()
  const got = await using('ioredis', port, { reconnectOnError: () => 2 }, (other) =>
    under(kinds('redis-readonly'), () => set(other)))
  assert.deepEqual([got, heard], [{ answer: 'OK' }, []])
})
