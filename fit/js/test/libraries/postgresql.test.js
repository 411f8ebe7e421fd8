/** pg against a real server: what callers see of a failure is what they see when that really happens. */

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import pg from 'pg'

import { current } from '../../index.js'
import { hookLoaded } from '../../late.js'
import { hookPostgresql } from '../../postgresql.js'
import { within } from '../../request.js'
import { verify } from '../../runtime.js'
import { injecting } from '../support/injecting.js'
import { contextOf, contextOfKinds } from '../support/sign.js'
import { between, freePort, postgresql, without } from '../support/servers.js'

const skip = without('initdb')
const UPDATE = 'update marks set n = n + 1 where id = 1'
const POINT = 'node>db:UPDATE:shop/marks'
const CONNECT = 'node>db:connect:shop'

let server, proxy, heard = []

before(async () => {
  if (skip) return
  injecting((said) => heard.push(said))
  hookLoaded()
  hookLoaded() // again changes nothing
  server = await postgresql({ deadlock_timeout: '50ms' })
  proxy = await between(server.port)
  const first = await patiently(() => opened({ database: 'postgres' }))
  await first.query('create database shop')
  await first.end()
  const client = await opened()
  await client.query('create table marks (id int primary key, n int)')
  await client.query('insert into marks values (1, 0), (2, 0)')
  await client.end()
})
after(async () => {
  proxy?.stop()
  await server?.stop()
})

async function patiently(work) {
  for (let at = 0; ; at++) {
    try {
      return await work()
    } catch (error) {
      if (at > 100) throw error
      await pause(100)
    }
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const where = (more) => ({ host: '127.0.0.1', port: server.port, user: 'ldfi', database: 'shop', ...more })

/** A client whose owner listens for the end of its connection. */
async function opened(more) {
  const client = new pg.Client(where(more))
  client.told = []
  client.on('error', (error) => client.told.push(described(error)))
  await client.connect()
  return client
}

function described(error) {
  if (!(error instanceof Error)) return { fine: error?.command ?? true }
  const { name, message, code, severity, errno, syscall } = error
  return { kind: error.constructor.name, name, message, code, severity, errno, syscall }
}

const seen = (work) => work().then(described, described)

function under(value, work) {
  heard = []
  return within({ context: verify(value), trace: {} }, work)
}

const kinds = (how, point = POINT) => contextOfKinds([[how, point]])

/** What a caller sees of a statement in a transaction, what its client tells, and what comes of the next one. */
async function story(client, statement) {
  await client.query('begin')
  const first = await statement(client)
  await pause(30)
  const next = await seen(() => client.query('select 1'))
  const story = { first, told: client.told, next, queryable: client._queryable }
  await client.end().catch(() => {})
  return story
}

/** Kind → a statement to which that really happens. */
const REALLY = {
  deadlock: async (client) => {
    const other = await opened()
    await other.query("begin; set local deadlock_timeout = '1min'; update marks set n = 0 where id = 1")
    await client.query('update marks set n = 0 where id = 2')
    const blocked = other.query('update marks set n = 0 where id = 2').catch(() => {})
    await pause(50)
    const said = await seen(() => client.query(UPDATE))
    await client.query('rollback; begin; select 1 / 0').catch(() => {}) // lets the other go on
    await blocked
    await other.end()
    return said
  },
  serialization: async (client) => {
    await client.query('set transaction isolation level repeatable read; select 1')
    await client.query('select * from marks')
    const other = await opened()
    await other.query(UPDATE)
    await other.end()
    return seen(() => client.query(UPDATE))
  },
  readonly: async (client) => {
    await client.query('set transaction read only')
    return seen(() => client.query(UPDATE))
  },
  lost: async (client) => {
    const waits = seen(() => client.query('select pg_sleep(60)'))
    const other = await opened()
    await other.query('select pg_terminate_backend($1)', [client.processID])
    await other.end()
    return waits
  },
}

for (const [how, really] of Object.entries(REALLY)) {
  test(`sql:${how} is what the server says when it happens`, { skip }, async () => {
    const want = await story(await opened(), really)
    assert.match(want.first.code, /^(40P01|40001|25006|57P01)$/)
    const got = await story(await opened(), (client) =>
      under(kinds(`sql-${how}`), () => seen(() => client.query(UPDATE))))
    assert.deepEqual(got, want)
    assert.deepEqual(heard, [`fired sql:${how}`])
  })
}

test('a connection that is torn down, with a statement of parameters and a name', { skip }, async () => {
  const torn = async (client) => {
    const waits = seen(() => client.query('select pg_sleep(60)'))
    await pause(50)
    for (const each of proxy.sockets) each.resetAndDestroy()
    return waits
  }
  const want = await story(await opened({ port: proxy.port }), torn)
  assert.equal(want.first.code, 'ECONNRESET')
  const named = { name: 'one', text: 'update marks set n = $1 where id = 1', values: [7] }
  const got = await story(await opened(), (client) =>
    under(kinds('reset'), () => seen(() => client.query(named))))
  assert.deepEqual(got, want)
})

test('an error is what is seen of a server that dies, and the connection stays', { skip }, async () => {
  const died = async (client) => {
    const waits = seen(() => client.query('select pg_sleep(60)'))
    await pause(50)
    for (const each of proxy.sockets) each.end()
    return waits
  }
  const want = await story(await opened({ port: proxy.port }), died)
  const client = await opened()
  const got = await under(contextOf([['e', POINT]]), () => seen(() => client.query(UPDATE)))
  assert.deepEqual(got, want.first)
  assert.deepEqual(await seen(() => client.query(UPDATE)), { fine: 'UPDATE' })
  await client.end()
})

test('what breaks the connection is left alone where nobody would hear of it', { skip }, async () => {
  const pool = new pg.Pool(where())
  const client = await pool.connect()
  for (const how of ['sql-lost', 'reset']) {
    const got = await under(kinds(how), () => seen(() => client.query(UPDATE)))
    assert.deepEqual([got, heard], [{ fine: 'UPDATE' }, []])
  }
  client.release()
  const got = await under(kinds('sql-lost'), () => seen(() => pool.query(UPDATE))) // it listens itself
  assert.deepEqual([got.code, heard], ['57P01', ['fired sql:lost']])
  await pool.end()
})

test('a connection is refused as when nobody listens', { skip }, async () => {
  const port = await freePort()
  for (const make of [(more) => new pg.Client(where(more)), (more) => new pg.Pool(where(more))]) {
    const want = await seen(() => make({ port }).connect())
    assert.equal(want.code, 'ECONNREFUSED')
    want.message = want.message.replace(port, server.port)
    for (const value of [kinds('refused', CONNECT), contextOf([['e', CONNECT]])]) {
      assert.deepEqual(await under(value, () => seen(() => make().connect())), want)
    }
    const patient = make()
    const began = Date.now()
    const client = await under(contextOf([['d', CONNECT, '60']]), () => patient.connect())
    assert.ok(Date.now() - began >= 55)
    await (client?.release ? client.release() : undefined)
    await patient.end()
    const how = { connectionTimeoutMillis: 60 }
    const silent = await silence()
    const late = await seen(() => make({ ...how, port: silent.port }).connect())
    silent.close()
    const got = await under(kinds('timeout-9000', CONNECT), () => seen(() => make(how).connect()))
    assert.deepEqual([got, heard], [late, ['fired timeout']])
  }
})

/** A server that never answers. */
async function silence() {
  const { createServer } = await import('node:net')
  const sockets = []
  const silent = createServer((socket) => sockets.push(socket.on('error', () => {})))
  await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve))
  return {
    port: silent.address().port,
    close: () => [...sockets, silent].forEach((each) => (each.destroy ? each.destroy() : each.close())),
  }
}

test('a delay is outlasted, or ends with its caller\'s patience; a timeout is such a one', { skip }, async () => {
  const client = await opened({ query_timeout: 150 })
  const want = await seen(() => client.query('select pg_sleep(0.3)'))
  assert.equal(want.message, 'Query read timeout')
  await pause(200)
  const n = async () => (await client.query('select n from marks where id = 1')).rows[0].n
  const before = await n()
  for (const value of [contextOf([['d', POINT, '9000']]), kinds('timeout-9000')]) {
    assert.deepEqual(await under(value, () => seen(() => client.query(UPDATE))), want)
    assert.deepEqual(await n(), before) // it was never sent
  }
  assert.deepEqual(heard, ['fired timeout'])
  const began = Date.now()
  const [slow, next] = await under(contextOf([['d', POINT, '60']]), () =>
    Promise.all([client.query(UPDATE), client.query('select n from marks where id = 1')]))
  assert.ok(Date.now() - began >= 55)
  assert.deepEqual([slow.command, next.rows[0].n], ['UPDATE', before + 1]) // none overtakes another
  await client.end()
  const patient = await opened()
  const got = await under(kinds('timeout-9000'), () => seen(() => patient.query(UPDATE)))
  assert.deepEqual([got, heard], [{ fine: 'UPDATE' }, []])
  await patient.end()
})

test('a delayed statement that cannot be sent fails as ever, and the next one goes', { skip }, async () => {
  const client = await opened()
  const bad = () => seen(() => client.query({ text: UPDATE, values: 'none' }))
  const want = await bad()
  const [got, next] = await under(contextOf([['d', POINT, '30']]), () => Promise.all([bad(), client.query('select 1 as n')]))
  assert.deepEqual([got, next.rows[0].n], [want, 1])
  await client.end()
})

test('a client of libpq is left alone', () => {
  class Native {
    _connect() {}

    _pulseQueryQueue() {}
  }
  const { _connect, _pulseQueryQueue } = Native.prototype
  hookPostgresql({ Client: Native, Pool: class {} })
  assert.deepEqual([Native.prototype._connect, Native.prototype._pulseQueryQueue], [_connect, _pulseQueryQueue])
})

test('the control group, the first calls only, and what a statement cannot have', { skip }, async () => {
  const client = await opened()
  const call = () => seen(() => client.query(UPDATE))
  const control = contextOfKinds([['sql-deadlock', POINT]], { arm: 'c' })
  assert.deepEqual([await under(control, call), heard], [{ fine: 'UPDATE' }, ['would_fire sql:deadlock']])
  const codes = await under(kinds('sql-deadlock-n2'), async () => [await call(), await call(), await call()])
  assert.deepEqual(codes.map(({ code }) => code), ['40P01', '40P01', undefined])
  assert.equal(heard.at(-1), 'let_through sql:deadlock')
  for (const how of ['refused', 'status-500', 'redis-loading', 'truncated']) {
    assert.deepEqual([await under(kinds(how), call), heard], [{ fine: 'UPDATE' }, []])
  }
  await client.end()
})

test('of many requests that share a pool those with a context fail, and no other', { skip }, async () => {
  const pool = new pg.Pool(where({ max: 2 }))
  const context = verify(kinds('sql-serialization'))
  const withCallback = () => new Promise((resolve) => {
    pool.query(UPDATE, (error) => resolve([error?.code, current()?.experiment]))
  })
  await Promise.all(Array.from({ length: 20 }, (_, at) =>
    within(at % 2 ? { context, trace: {} } : undefined, async () => {
      for (let i = 0; i < 3; i++) {
        assert.equal((await seen(() => pool.query(UPDATE))).code, at % 2 ? '40001' : undefined)
        assert.deepEqual(await withCallback(), at % 2 ? ['40001', 'e7c1'] : [undefined, undefined])
      }
    })))
  await pool.end()
})
