/**
 * kafkajs as an injection point: messages that are sent, also within a transaction.
 *
 * The point is where a broker would be told of them: beneath the producer's own retries, each of which is
 * a call. Where none of them succeeds, the caller sees what kafkajs makes of that.
 */

import { unconnected } from './connection.js'
import { found } from './found.js'
import { mayReach, passing } from './hosts.js'
import { aimed, fire } from './passage.js'
import { messagePoint } from './points.js'
import { served } from './request.js'

const HOOKED = Symbol.for('fit.kafkajs')
const PRODUCE = 0 // the key of Kafka's protocol

/** Put the injection point into this module's brokers. Doing it again changes nothing. */
export function hookKafkajs(library) {
  const prototype = found('kafkajs/src/broker')?.prototype
  const { produce } = prototype ?? {}
  if (!produce || produce[HOOKED]) return
  prototype.produce = function (request) {
    const { host } = this.connectionPool
    const send = () => produce.call(this, mayReach(host) ? request : withheld(request, host))
    return (served() ? struck(library, this, request, send) : undefined) ?? send()
  }
  prototype.produce[HOOKED] = true
}

/** What is produced, its messages without a context of ours: the broker is a stranger. */
function withheld({ topicData, ...rest }, host) {
  const pass = (value) => passing(String(value), () => [host])
  const clean = ({ headers, ...message }) => (
    headers?.baggage ? { ...message, headers: { ...headers, baggage: [headers.baggage].flat().map(pass) } }
      : { ...message, headers })
  const topics = topicData.map(({ partitions, ...topic }) => ({
    ...topic, partitions: partitions.map((each) => ({ ...each, messages: each.messages.map(clean) })),
  }))
  return { ...rest, topicData: topics }
}

/** Have a request fail, or go later; undefined for one to which nothing happens. */
function struck(library, broker, { topicData }, send) {
  const [aim] = topicData
    .map(({ topic }) => aimed((name) => messagePoint(name, 'send', 'kafka', topic)))
    .filter(Boolean)
  if (!aim) return undefined
  const { kind, delayMs } = aim.injection
  const patience = patienceOf(broker)
  const able = kind === 'timeout' ? patience <= delayMs : ['error', 'refused', 'delay'].includes(kind)
  const firing = able ? fire(aim) : undefined
  if (!firing) return undefined
  if (kind === 'error' || kind === 'refused') return unreachable(library, broker, firing.proof)
  return late(library, broker, Math.min(delayMs, patience), patience <= delayMs, firing.proof, send)
}

/** For how many milliseconds a broker is waited for. */
function patienceOf({ connectionPool: { pool } }) {
  const { enforceRequestTimeout, requestTimeout } = pool?.[0]?.requestQueue ?? {}
  return enforceRequestTimeout ? requestTimeout : Infinity
}

async function unreachable({ KafkaJSConnectionError }, { connectionPool: { host, port } }, proof) {
  const { message, code } = await new Promise((resolve) => unconnected('refused', { host, port }, proof, resolve))
  proof.end({ type: code })
  throw new KafkaJSConnectionError(`Connection error: ${message}`, { broker: `${host}:${port}`, code })
}

async function late(library, broker, milliseconds, over, proof, send) {
  const createdAt = Date.now()
  await new Promise((resolve) => setTimeout(resolve, milliseconds))
  proof.end(over ? { type: 'timeout' } : undefined)
  if (!over) return send()
  const { maxVersion } = broker.versions?.[PRODUCE] ?? {}
  throw new library.KafkaJSRequestTimeoutError(
    `Request Produce(key: ${PRODUCE}, version: ${Math.min(maxVersion, NEWEST)}) timed out`,
    { broker: broker.brokerAddress, createdAt, sentAt: createdAt, pendingDuration: 0 },
  )
}

const NEWEST = 7 // that kafkajs knows
