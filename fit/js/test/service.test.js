/** A service over real sockets: what its callers see, and what it calls. */

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import { after, before, test } from 'node:test'

import { current, edge, failureContext, install, scenarioOf } from '../index.js'
import { within } from '../request.js'
import { service as serviceName, verify } from '../runtime.js'
import { contextOf, contextOfKinds, FIT_KEYS } from './support/sign.js'

const unhooked = globalThis.fetch
const servers = []
let callee, service, guarded, point

async function served(handler) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${server.address().port}`
}

const witness = () => {} // OpenTelemetry is not here: whoever listens makes it proof

before(async () => {
  subscribe('fit.fault', witness)
  process.env.FIT_KEYS = FIT_KEYS
  assert.equal(install('node'), true)
  callee = await served((request, response) => response.end('fine'))
  point = `node>http:GET:${callee.slice('http://'.length)}/titles/*`
  const answer = async (request, response) => {
    const { search } = new URL(request.url, 'http://service')
    const times = Number(new URLSearchParams(search).get('times') ?? 1)
    const timeout = Number(new URLSearchParams(search).get('timeout') ?? 60_000)
    const seen = []
    const errors = []
    for (let i = 0; i < times; i++) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 10))
      const signal = AbortSignal.timeout(timeout)
      const called = fetch(`${callee}/titles/${i}`, { signal })
      const failed = (error) => {
        const { name, message, cause } = error
        if (cause) {
          const { errno, code, syscall, address } = cause
          const said = cause.message.replace(/:[0-9]+$/, '')
          errors.push({ name, message, said, errno, code, syscall, address })
        }
        return name
      }
      seen.push(await called.then((r) => r.status, failed))
    }
    const whole = search.includes('whole') && { errors }
    response.end(JSON.stringify({ seen, ...whole, baggage: request.headers.baggage, ...known() }))
  }
  service = await served((request, response) =>
    failureContext(request, response, () => answer(request, response)),
  )
  guarded = await served((request, response) =>
    edge(request, response, () =>
      failureContext(request, response, () => answer(request, response)),
    ),
  )
})

after(() => servers.forEach((server) => server.close()))

function known() {
  return { experiment: current()?.experiment }
}

async function ask(url, baggage, query = '', headers = {}) {
  const response = await unhooked(`${url}/${query}`, { headers: { ...(baggage && { baggage }), ...headers } })
  return response.json()
}

test('without OpenTelemetry, and with nobody listening, nothing is injected', async () => {
  const value = contextOf([['e', point]])
  unsubscribe('fit.fault', witness)
  const unseen = await ask(service, `fit=${value}`)
  subscribe('fit.fault', witness)
  assert.deepEqual(unseen, { seen: [200], baggage: `fit=${value}`, experiment: 'e7c1' })
  assert.deepEqual((await ask(service, `fit=${value}`)).seen, [503])
})

test('the name is read from either variable of OpenTelemetry', async () => {
  for (const [variables, name] of [
    [{ OTEL_SERVICE_NAME: 'a', OTEL_RESOURCE_ATTRIBUTES: 'service.name=b' }, 'a'],
    [{ OTEL_RESOURCE_ATTRIBUTES: 'x=y, service.name=my%20shop' }, 'my shop'],
    [{ OTEL_RESOURCE_ATTRIBUTES: 'x=y' }, 'unknown_service'],
  ]) {
    for (const known of ['OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES']) delete process.env[known]
    Object.assign(process.env, variables)
    install()
    assert.equal(serviceName(), name)
  }
  install('node')
})

test('a request without a context goes through', async () => {
  assert.deepEqual(await ask(service), { seen: [200] })
})

test('an error is answered with 503, to the stamped request alone', async () => {
  const value = contextOf([['e', point]])
  const all = await Promise.all(
    Array.from({ length: 60 }, (_, i) => ask(service, i % 2 ? `a=b,fit=${value}` : 'a=b', '?times=3')),
  )
  all.forEach(({ seen, experiment }, i) => {
    assert.deepEqual(seen, i % 2 ? [503, 503, 503] : [200, 200, 200])
    assert.equal(experiment, i % 2 ? 'e7c1' : undefined)
  })
})

test('a status is answered with it, at the first call alone where the context says so', async () => {
  const always = contextOfKinds([['status-404', point]])
  assert.deepEqual((await ask(service, `fit=${always}`)).seen, [404])
  const once = contextOfKinds([['status-500-n1', point]])
  assert.deepEqual((await ask(service, `fit=${once}`, '?times=2')).seen, [500, 200])
})

test('a refused connection is what fetch rejects with where nobody listens', async () => {
  const { createServer } = await import('node:http')
  const gone = createServer()
  await new Promise((resolve) => gone.listen(0, '127.0.0.1', resolve))
  const { port } = gone.address()
  await new Promise((resolve) => gone.close(resolve))
  const look = ({ name, message, cause }) => ({
    name,
    message,
    said: cause.message.replace(/:[0-9]+$/, ''),
    ...Object.fromEntries(['errno', 'code', 'syscall', 'address'].map((key) => [key, cause[key]])),
  })
  const real = await unhooked(`http://127.0.0.1:${port}/titles/1`).catch(look)
  const value = contextOfKinds([['refused', point]])
  assert.deepEqual((await ask(service, `fit=${value}`)).seen, ['TypeError'])
  const injected = await ask(service, `fit=${value}`, '?whole=1')
  assert.deepEqual(injected.errors, [{ ...real }])
})

test('of a kind that fetch cannot have nothing happens, and nothing says that it did', async () => {
  const heard = []
  const listen = (message) => heard.push(message.outcome)
  subscribe('fit.fault', listen)
  for (const how of ['timeout-100', 'grpc-ABORTED', 'redis-lost', 'sql-lost']) {
    for (const arm of ['t', 'c']) {
      const value = contextOfKinds([[how, point]], { arm })
      const { seen, experiment } = await ask(service, `fit=${value}`)
      assert.deepEqual([seen, experiment], [[200], 'e7c1'], how)
    }
  }
  unsubscribe('fit.fault', listen)
  assert.deepEqual(heard, [])
})

test('another point is not touched', async () => {
  const elsewhere = contextOf([['e', point.replace('GET', 'POST')], ['e', `${point}/similar`]])
  assert.deepEqual((await ask(service, `fit=${elsewhere}`)).seen, [200])
})

test('the first two calls of a request fail, the third goes through', async () => {
  const value = contextOf([['e', point, 'n2']])
  assert.deepEqual((await ask(service, `fit=${value}`, '?times=4')).seen, [503, 503, 200, 200])
  assert.deepEqual((await ask(service, `fit=${value}`, '?times=1')).seen, [503])
})

test('calls are counted for a trace, not for each entry of it', async () => {
  const value = contextOf([['e', point, 'n1']])
  const headers = { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` }
  assert.deepEqual((await ask(service, `fit=${value}`, '', headers)).seen, [503])
  assert.deepEqual((await ask(service, `fit=${value}`, '', headers)).seen, [200])
})

test('a delay past the caller\'s timeout ends with it; one that is outlasted goes through', async () => {
  const long = contextOf([['d', point, '60000']])
  const started = Date.now()
  assert.deepEqual((await ask(service, `fit=${long}`, '?timeout=100')).seen, ['TimeoutError'])
  assert.ok(Date.now() - started < 5000)
  const short = contextOf([['d', point, '150']])
  const again = Date.now()
  assert.deepEqual((await ask(service, `fit=${short}`)).seen, [200])
  assert.ok(Date.now() - again >= 145)
})

test('the control arm only records, and what happened is published', async () => {
  const heard = []
  const listen = (message) => heard.push(message.outcome)
  subscribe('fit.fault', listen)
  await ask(service, `fit=${contextOf([['e', point]], { arm: 'c' })}`).then(({ seen }) =>
    assert.deepEqual(seen, [200]),
  )
  await ask(service, `fit=${contextOf([['e', point, 'n1']])}`, '?times=2')
  unsubscribe('fit.fault', listen)
  assert.deepEqual(heard, ['would_fire', 'fired', 'let_through'])
})

test('no Connection takes out what the edge puts in', async () => {
  const echo = await served((request, response) =>
    edge(request, response, () => response.end(JSON.stringify([request.headers, request.rawHeaders]))),
  )
  const headers = { baggage: 'a=b,fit=x', connection: 'close, Baggage,x-own' }
  const [response] = await once(send(echo, { headers }).end(), 'response')
  const [seen, raw] = JSON.parse(Buffer.concat(await response.toArray()))
  assert.deepEqual([seen.baggage, seen.connection], ['a=b', 'close,x-own'])
  assert.equal(raw[raw.findIndex((name) => name.toLowerCase() === 'connection') + 1], 'close,x-own')
})

test('from outside the edge lets in only what was signed for this very device', async () => {
  const good = contextOf([['e', point]])
  const forged = good.slice(0, -1) + (good.endsWith('A') ? 'Q' : 'A')
  const twice = `fit=${good},a=b,fit=${good}`
  for (const header of [`fit=${forged},a=b`, `a=b,fit=${contextOf([['e', point]], { seconds: -1 })}`, twice]) {
    const inside = await ask(service, header)
    assert.deepEqual([inside.seen, inside.baggage], [[200], header])
    const behind = await ask(guarded, header)
    assert.deepEqual([behind.seen, behind.baggage], [[200], 'a=b'])
  }
  const mine = contextOf([['e', point]], { experiment: scenarioOf('d1') })
  const from = (device) => ask(guarded, `fit=${mine}`, '', { 'x-device-id': device })
  assert.deepEqual((await from('d1')).seen, [503])
  assert.deepEqual((await from('d2')).seen, [200])
  assert.deepEqual((await ask(guarded, `fit=${good}`)).seen, [200])
  assert.equal((await ask(guarded, 'fit=x')).baggage, undefined)
})

test('a failure inside fit lets the call through', async () => {
  const context = verify(contextOf([['e', point]]))
  const url = `${callee}/titles/1`
  let looks = 0
  const breaksOnce = {
    toString() {
      if (looks++ === 0) throw new Error('broken')
      return url
    },
  }
  const status = (input) =>
    within({ context, trace: {} }, () => fetch(input)).then((response) => response.status)
  assert.deepEqual([await status(url), await status(breaksOnce)], [503, 200])
  assert.equal(looks, 2)
})

test('the middleware goes on where a request cannot be read', () => {
  for (const middleware of [failureContext, edge]) {
    let went = 0
    const request = { headers: { baggage: { split: 'none' } } }
    middleware(request, {}, () => went++)
    assert.equal(went, 1)
  }
})

test('without a key, or with one that cannot be read, nothing is installed', () => {
  const hooked = globalThis.fetch
  globalThis.fetch = unhooked
  try {
    delete process.env.FIT_KEYS
    assert.equal(install('node'), false)
    process.env.FIT_KEYS = 'broken'
    assert.equal(install('node'), false)
    assert.equal(globalThis.fetch, unhooked)
  } finally {
    globalThis.fetch = hooked
  }
})
