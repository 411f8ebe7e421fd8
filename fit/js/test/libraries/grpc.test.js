/** gRPC over real sockets: what callers see of a failure is what they see when that really happens. */

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'

import * as grpc from '@grpc/grpc-js'

import { current, rpcPoint } from '../../index.js'
import { within } from '../../request.js'
import { verify } from '../../runtime.js'
import { injecting } from '../support/injecting.js'
import { contextOf, contextOfKinds } from '../support/sign.js'

const text = { requestSerialize: Buffer.from, requestDeserialize: String, responseSerialize: Buffer.from, responseDeserialize: String }
const SERVICE = {
  Get: { path: '/shop.Prices/Get', requestStream: false, responseStream: false, ...text },
  List: { path: '/shop.Prices/List', requestStream: false, responseStream: true, ...text },
  Put: { path: '/shop.Prices/Put', requestStream: true, responseStream: false, ...text },
}
const Client = grpc.makeClientConstructor(SERVICE, 'Prices')
const { status } = grpc

const early = new grpc.Server() // with its handlers, before anything is hooked
early.addService({ Get: SERVICE.Get }, { Get: (call, done) => done(null, `early ${current()?.experiment}`) })
let server, address, client
let heard = []
let really = () => undefined

before(async () => {
  injecting((said) => heard.push(said))
  server = new grpc.Server()
  server.addService(SERVICE, {
    Get: (call, done) => {
      if (really() === 'silent') return
      done(really(), `17 ${current()?.experiment}`)
    },
    List: (call) => {
      call.write('1')
      call.end()
    },
    Put: (call, done) => call.on('data', () => {}).on('end', () => done(null, 'put')),
  })
  const insecure = grpc.ServerCredentials.createInsecure()
  const port = await new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', insecure, (error, at) => (error ? reject(error) : resolve(at)))
  })
  address = `127.0.0.1:${port}`
  client = new Client(address, grpc.credentials.createInsecure())
})
after(() => {
  client.close()
  server.forceShutdown()
})

const CALLS = {
  unary: (to, options) => new Promise((resolve, reject) => {
    const done = (error, answer) => (error ? reject(error) : resolve(answer))
    to.Get('x', options?.metadata ?? new grpc.Metadata(), { deadline: deadline(options) }, done)
  }),
  'server stream': async (to, options) => {
    const all = []
    for await (const each of to.List('x', { deadline: deadline(options) })) all.push(each)
    return all.join()
  },
  'client stream': (to, options) => new Promise((resolve, reject) => {
    const done = (error, answer) => (error ? reject(error) : resolve(answer))
    const call = to.Put(new grpc.Metadata(), { deadline: deadline(options) }, done)
    call.write('x')
    call.end()
  }),
}
const METHODS = { unary: 'Get', 'server stream': 'List', 'client stream': 'Put' }
const FINE = { unary: '17 undefined', 'server stream': '1', 'client stream': 'put' }

function deadline({ patience } = {}) {
  return patience ? Date.now() + patience : Infinity
}

/** What a call comes to; ports and moments are left out. */
function seen(work) {
  return work().catch(({ name, message, code, details, metadata }) => ({
    name, code, metadata: metadata.getMap(),
    message: message.replace(/after [\d.]+s.*/, 'after a while').replace(/:\d+\./, ':PORT.'),
    details: details.replace(/after [\d.]+s.*/, 'after a while').replace(/:\d+\./, ':PORT.'),
  }))
}

function under(value, work) {
  heard = []
  return within({ context: verify(value), trace: {} }, () => seen(work))
}

const point = (kind) => `node>rpc:${METHODS[kind]}:${address}/shop.Prices`

for (const [kind, call] of Object.entries(CALLS)) {
  test(`${kind}: a status, a refused connection, a delay`, async () => {
    assert.equal(await call(client), FINE[kind])
    const aborted = await under(contextOfKinds([['grpc-ABORTED', point(kind)]]), () => call(client))
    assert.deepEqual([aborted.code, aborted.details, heard], [status.ABORTED, 'fault injected', ['fired grpc:ABORTED']])
    const gone = new Client('127.0.0.1:1', grpc.credentials.createInsecure())
    const want = await seen(() => call(gone))
    gone.close()
    const refused = await under(contextOfKinds([['refused', point(kind)]]), () => call(client))
    assert.deepEqual(refused, want)
    const began = Date.now()
    const value = contextOf([['d', point(kind), '60']])
    assert.equal(await under(value, () => call(client)), FINE[kind])
    assert.ok(Date.now() - began >= 55)
    assert.deepEqual(heard, ['fired delay'])
  })

  test(`${kind}: a deadline is over as when nobody answers`, async () => {
    const patience = 80
    const late = await under(contextOf([['d', point(kind), '9000']]), () => call(client, { patience }))
    assert.equal(late.code, status.DEADLINE_EXCEEDED)
    const timeout = await under(contextOfKinds([['timeout-9000', point(kind)]]), () => call(client, { patience }))
    assert.deepEqual([timeout, heard], [late, ['fired timeout']])
    const patient = await under(contextOfKinds([['timeout-9000', point(kind)]]), () => call(client))
    assert.deepEqual([patient, heard], [FINE[kind], []])
    if (kind !== 'unary') return
    really = () => 'silent'
    const want = await seen(() => call(client, { patience }))
    really = () => undefined
    assert.deepEqual(timeout, want)
  })
}

test('a name does not resolve, as grpc-js tells it; an address needs no name, and who waits for a server goes on waiting', async () => {
  const nobody = 'a'.repeat(64) // longer than a label may be: no resolver asks anybody
  const unresolved = (kind, at) => contextOfKinds([['unresolved', point(kind).replace(address, at)]])
  const named = address.replace('127.0.0.1', 'localhost')
  for (const [scheme, [kind, call]] of ['', 'dns:', 'dns:///'].map((each, n) => [each, Object.entries(CALLS)[n]])) {
    const [there, gone] = [named, named.replace('localhost', nobody)].map((to) => new Client(scheme + to, grpc.credentials.createInsecure()))
    const want = JSON.stringify(await seen(() => call(gone))).replaceAll(nobody, 'localhost')
    const told = JSON.stringify(await under(unresolved(kind, named), () => call(there)))
    assert.deepEqual([told, heard], [want, ['fired unresolved']])
    const metadata = new grpc.Metadata({ waitForReady: true })
    if (kind === 'unary') {
      assert.deepEqual([await under(unresolved(kind, named), () => call(there, { metadata })), heard], [FINE.unary, []])
    }
    assert.deepEqual([await under(unresolved(kind, address), () => call(client)), heard], [FINE[kind], []])
    there.close()
    gone.close()
  }
})

test('of many calls at once those with a context fail, and no other; the first ones alone', async () => {
  const context = verify(contextOfKinds([['grpc-NOT_FOUND-n2', point('unary')]]))
  await Promise.all(Array.from({ length: 20 }, async (_, at) => {
    const calls = async () => {
      const codes = []
      for (let i = 0; i < 3; i++) codes.push((await seen(() => CALLS.unary(client))).code)
      assert.deepEqual(codes, at % 2 ? [5, 5, undefined] : [undefined, undefined, undefined])
    }
    await within(at % 2 ? { context, trace: {} } : undefined, calls)
  }))
})

test('what a call cannot have is let through, and so is the control group', async () => {
  for (const how of ['reset', 'status-500', 'sql-lost']) {
    const value = contextOfKinds([[how, point('unary')]])
    assert.deepEqual([await under(value, () => CALLS.unary(client)), heard], [FINE.unary, []])
  }
  const control = contextOf([['e', point('unary')]], { arm: 'c' })
  assert.deepEqual([await under(control, () => CALLS.unary(client)), heard], [FINE.unary, ['would_fire error']])
  const metadata = new grpc.Metadata({ waitForReady: true })
  const value = contextOfKinds([['refused', point('unary')]])
  assert.deepEqual([await under(value, () => CALLS.unary(client, { metadata })), heard], [FINE.unary, []])
})

test('a server reads the context of its request, whenever its handlers were registered', async () => {
  const metadata = new grpc.Metadata()
  metadata.set('baggage', `a=b,fit=${contextOf([['e', 'elsewhere']])}`)
  assert.equal(await CALLS.unary(client, { metadata }), '17 e7c1')
  const port = await new Promise((resolve) => {
    early.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (_, at) => resolve(at))
  })
  const asking = new Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
  assert.equal(await CALLS.unary(asking, { metadata }), 'early e7c1')
  assert.equal(await CALLS.unary(asking), 'early undefined')
  asking.close()
  early.forceShutdown()
})

test('what a server starts is let through once it has answered', async () => {
  let later
  const start = () => {
    later = pause(10).then(() => CALLS.unary(client))
  }
  const answered = (call, done) => {
    call.on('data', () => {}).on('end', () => {
      start()
      if (done) done(null, 'x')
      else call.end()
    }).resume()
  }
  const kinds = [[false, false], [false, true], [true, false], [true, true]]
  const service = Object.fromEntries(kinds.map(([requestStream, responseStream], n) => (
    [`Ask${n}`, { ...SERVICE.Get, path: `/shop.Later/Ask${n}`, requestStream, responseStream }])))
  const other = new grpc.Server()
  other.addService(service, {
    Ask0: (call, done) => done(null, start() ?? 'x'), Ask1: (call) => call.end(start()), Ask2: answered, Ask3: answered,
  })
  const port = await new Promise((resolve) => {
    other.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (_, at) => resolve(at))
  })
  const asking = new (grpc.makeClientConstructor(service, 'Later'))(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
  const metadata = new grpc.Metadata()
  metadata.set('baggage', `fit=${contextOf([['e', point('unary')]])}`)
  for (const [n, [requestStream, responseStream]] of kinds.entries()) {
    heard = []
    await new Promise((resolve) => {
      const done = responseStream ? [] : [resolve]
      const call = asking[`Ask${n}`](...(requestStream ? [metadata] : ['x', metadata]), ...done)
      if (responseStream) call.on('data', () => {}).on('end', resolve)
      if (requestStream) call.end('x')
    })
    assert.deepEqual([n, await later, heard], [n, FINE.unary, ['outlived error']])
  }
  asking.close()
  other.forceShutdown()
})

test('a target without a port is refused where grpc-js would have called: at 443', async () => {
  // real calls, to where nobody listens
  const ended = (to) => CALLS.unary(to).then(() => 'answered', ({ details }) =>
    details.replace(/ECONNREFUSED (127\.0\.0\.1|::1):/, 'ECONNREFUSED LOOPBACK:'))
  for (const [target, peer] of [
    ['localhost', 'localhost'], ['dns:localhost', 'localhost'], ['dns:///127.0.0.1', '127.0.0.1'],
    ['127.0.0.1', '127.0.0.1'], ['[::1]', '[::1]'], ['::1', '::1'], ['ipv6:[::1]', '[::1]'],
    ['localhost:1', 'localhost:1'], ['[::1]:1', '[::1]:1'],
  ]) {
    const gone = new Client(target, grpc.credentials.createInsecure())
    const want = await ended(gone)
    const value = contextOfKinds([['refused', `node>${rpcPoint('node', '/shop.Prices/Get', peer).split('>')[1]}`]])
    const refused = await under(value, () => ended(gone))
    gone.close()
    assert.deepEqual(heard, ['fired refused'], target)
    assert.equal(refused, want, target)
    assert.match(refused, target.includes('t:1') || target.includes(']:1') ? /LOOPBACK:1\./ : /LOOPBACK:443\./, target)
  }
})
