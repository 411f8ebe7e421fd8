/** kafkajs over real sockets: what callers see of a failure is what they see when a broker is gone, or silent. */

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'

import { Kafka, logLevel, Partitioners } from 'kafkajs'

import { current, forKafkajs } from '../../index.js'
import { hookLoaded } from '../../late.js'
import { within } from '../../request.js'
import { verify } from '../../runtime.js'
import { broker } from '../support/broker.js'
import { injecting } from '../support/injecting.js'
import { contextOf, contextOfKinds } from '../support/sign.js'
import { freePort } from '../support/servers.js'

const POINT = 'node>message:send:kafka/plays'
const RETRY = { retries: 2, initialRetryTime: 20, factor: 0, multiplier: 1 }
const FINE = { offset: '7' }
const closing = []
let heard = []

before(() => {
  injecting((said) => heard.push(said))
})
after(async () => {
  for (const close of closing.reverse()) await close()
})

/** A producer, which is connected before anything is hooked, and its broker. */
async function connected(options = {}) {
  const at = await broker('plays', options.leader)
  const retry = { ...RETRY, ...options.retry }
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${at.port}`], clientId: 'test', logLevel: logLevel.NOTHING, ...options, retry,
  })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, retry })
  await producer.connect()
  closing.push(at.stop, () => producer.disconnect().catch(() => {}))
  hookLoaded()
  const send = () => producer.send({ topic: 'plays', messages: [{ value: 'x' }] })
  if (!options.leader) assert.deepEqual(await seen(send), FINE)
  return { ...at, send, sendBatch: () => producer.sendBatch({ topicMessages: [{ topic: 'plays', messages: [{ value: 'y' }] }] }) }
}

function described(error) {
  if (!(error instanceof Error)) return { offset: error[0].baseOffset }
  const { name, message, code, broker: at, retriable, retryCount, cause } = error
  const plain = (text) => text?.replace(/:\d{4,5}$/, ':PORT')
  return {
    kind: error.constructor.name, name, message: plain(message), code, at: plain(at), retriable, retryCount,
    cause: cause && described(cause),
  }
}

const seen = (work) => work().then(described, described)

function under(value, work) {
  heard = []
  return within({ context: verify(value), trace: {} }, work)
}

const kinds = (how, options) => contextOfKinds([[how, POINT]], options)

test('a broker that is gone: its producer tries again, and gives up as ever', async () => {
  const bereft = await connected({ leader: await freePort() }) // others answer
  const want = await seen(bereft.send)
  assert.equal(want.cause.code, 'ECONNREFUSED')
  const { send, sendBatch, told } = await connected()
  for (const value of [kinds('refused'), contextOf([['e', POINT]])]) {
    for (const work of [send, sendBatch]) assert.deepEqual(await under(value, () => seen(work)), want)
  }
  assert.deepEqual(heard, Array(3).fill('fired error')) // each attempt is a call
  assert.equal(told.produced, 1)
  assert.deepEqual(await seen(send), FINE)
})

test('the first calls only: the retries help', async () => {
  const { send, told } = await connected()
  assert.deepEqual(await under(kinds('refused-n2'), () => seen(send)), FINE)
  assert.deepEqual(heard, ['fired refused', 'fired refused', 'let_through refused'])
  assert.equal(told.produced, 2)
})

test('a broker that is silent: a request\'s timeout is over', async () => {
  const options = { requestTimeout: 150, retry: { retries: 0 } }
  const { send, told } = await connected(options)
  told.silent = true
  const want = await seen(send)
  told.silent = false
  assert.equal(want.cause.name, 'KafkaJSRequestTimeoutError')
  for (const value of [kinds('timeout-9000'), contextOf([['d', POINT, '9000']])]) {
    assert.deepEqual(await under(value, () => seen(send)), want)
  }
  assert.deepEqual(heard, ['fired delay'])
  const began = Date.now()
  assert.deepEqual(await under(contextOf([['d', POINT, '60']]), () => seen(send)), FINE)
  assert.ok(Date.now() - began >= 55)
  assert.deepEqual([await under(kinds('timeout-90'), () => seen(send)), heard], [FINE, []])
})

test('the control group, and what a message cannot have', async () => {
  const { send } = await connected()
  assert.deepEqual([await under(kinds('refused', { arm: 'c' }), () => seen(send)), heard], [FINE, ['would_fire refused']])
  for (const how of ['reset', 'status-500', 'empty', 'redis-lost']) {
    assert.deepEqual([await under(kinds(how), () => seen(send)), heard], [FINE, []])
  }
})

test('of many requests with one producer those with a context fail, and no other', async () => {
  const { send } = await connected({ retry: { retries: 0 } })
  const context = verify(kinds('refused'))
  await Promise.all(Array.from({ length: 20 }, (_, at) =>
    within(at % 2 ? { context, trace: {} } : undefined, async () => {
      for (let i = 0; i < 3; i++) assert.equal((await seen(send)).offset, at % 2 ? undefined : '7')
      assert.equal(current()?.experiment, at % 2 ? 'e7c1' : undefined)
    })))
})

/** A message as a consumer of kafkajs is given it. */
function received(headers) {
  const require = createRequire(import.meta.url)
  const [encoded, Decoder, decoded] = ['record/v0', '../decoder', 'record/v0/decoder']
    .map((file) => require(`kafkajs/src/protocol/recordBatch/${file}`))
  const bytes = encoded({ value: Buffer.from('x'), headers }).buffer
  const decoder = new Decoder(bytes)
  decoder.readVarInt() // its length
  return decoded(decoder, { firstOffset: '0', firstTimestamp: '0', magicByte: 2 })
}

test('what a consumer does with a message is under the context that the message carries', async () => {
  const { send, told } = await connected({ retry: { retries: 0 } })
  const handle = forKafkajs(async ({ message }) => {
    await new Promise((resolve) => setTimeout(resolve, 1))
    return [current()?.experiment, message.value.toString(), await seen(send)]
  })
  heard = []
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const once = { baggage: `a=b,fit=${kinds('refused-n1')}`, traceparent }
  const [experiment, value, first] = await handle({ topic: 'orders', partition: 0, message: received(once) })
  assert.deepEqual([experiment, value, first.kind], ['e7c1', 'x', 'KafkaJSNumberOfRetriesExceeded'])
  // The same message again, after its consumer has failed: the first call of its request has been
  assert.deepEqual((await handle({ message: received(once) }))[2], FINE)
  assert.deepEqual(heard, ['fired refused', 'let_through refused'])
  const several = received({ baggage: ['a=b', `fit=${kinds('refused')}`] })
  assert.equal((await handle({ message: several }))[0], 'e7c1')
  for (const headers of [{}, { baggage: 'a=b' }, { baggage: 'fit=x' }, { baggage: `fit=${kinds('refused')}x` }]) {
    assert.deepEqual(await handle({ message: received(headers) }), [undefined, 'x', FINE])
  }
  assert.deepEqual(await handle({ message: { value: 'x', headers: { baggage: null } } }), [undefined, 'x', FINE])
  assert.deepEqual(await handle({ message: { value: 'x' } }), [undefined, 'x', FINE])
  assert.ok(told.produced)
})

test('messages side by side are each under their own context', async () => {
  const handle = forKafkajs(async () => {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 10))
    return current()?.experiment
  })
  const found = await Promise.all(Array.from({ length: 20 }, (_, at) => handle({
    message: received(at % 2 ? { baggage: `fit=${contextOf([['e', POINT]], { experiment: `e${at}` })}` } : {}),
  })))
  found.forEach((experiment, at) => assert.equal(experiment, at % 2 ? `e${at}` : undefined))
  assert.throws(forKafkajs(() => { throw new RangeError('its own') }).bind(undefined, { message: {} }), RangeError)
})
