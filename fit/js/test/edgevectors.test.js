/** What the edge in Python does of the same: fit/protocol/vectors/edge.json and features.json. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { markOf } from '../allocation.js'
import { Allowances, written } from '../allowance.js'
import { values, without } from '../baggage.js'
import { blake2b } from '../blake2b.js'
import { ContextError } from '../context.js'
import { faultOf } from '../faults.js'
import { featuresOf } from '../features.js'
import { Keys } from '../keys.js'
import { Devices } from '../identity.js'
import { holds, predicateOf } from '../predicate.js'
import { leaseOf, MalformedRules } from '../rules.js'
import { encode } from '../signing.js'

function vectors(file) {
  return JSON.parse(readFileSync(new URL(`../../protocol/vectors/${file}`, import.meta.url), 'utf8'))
}

const edge = vectors('edge.json')
const { requests, predicates } = vectors('features.json')

test('BLAKE2b is what OpenSSL takes for it, whatever the length', () => {
  for (let length = 0; length < 400; length++) {
    const bytes = Buffer.alloc(length, `${length} and more`)
    assert.deepEqual(blake2b(bytes, 64), createHash('blake2b512').update(bytes).digest())
  }
})

test('marks of devices', () => {
  assert.ok(edge.marks.length > 40)
  for (const { device, mark } of edge.marks) {
    assert.equal(markOf(device).toString(16).padStart(16, '0'), mark, device)
  }
})

test('devices are those of the vectors', () => {
  const { cases } = vectors('devices.json')
  assert.ok(cases.length > 400)
  process.removeAllListeners('warning') // of sources that are none
  for (const { setting, trusted, headers, peer, device } of cases) {
    const devices = new Devices({ FIT_DEVICE: setting, FORWARDED_ALLOW_IPS: trusted })
    const values = (name) => headers.filter(([key]) => key === name).map(([, value]) => value)
    assert.equal(devices.of(values, peer), device, JSON.stringify({ setting, trusted, headers, peer }))
  }
})

test('leases are read all or nothing, and claim the same devices', () => {
  assert.ok(edge.leases.length > 60)
  for (const { document, lease } of edge.leases) {
    assert.deepEqual(told(document), lease, JSON.stringify(document))
  }
})

function told(document) {
  let lease
  try {
    lease = leaseOf(JSON.stringify(document))
  } catch (error) {
    if (!(error instanceof MalformedRules)) throw error
    return null
  }
  const claims = {}
  for (const { device } of edge.marks) {
    const found = lease.claims(markOf(device)).map(([{ experiment }, arm]) => [experiment, arm])
    if (found.length) claims[device] = found
  }
  return { seconds: lease.seconds, wanted: [...lease.wanted].sort(), claims }
}

test('what is no JSON arms nothing', () => {
  for (const text of ['', '{', '[]', 'null', '7', '{"rules": NaN}']) {
    assert.throws(() => leaseOf(text), MalformedRules, text)
  }
})

test('features of requests whose body is not read', () => {
  const unread = requests.filter(({ body }) => body === null)
  assert.ok(unread.length >= 15 && edge.features.length > 150)
  for (const { features, wanted, ...request } of [...unread, ...edge.features]) {
    const found = Object.fromEntries(featuresOf(request, new Set(wanted)))
    assert.deepEqual(found, { ...features }, JSON.stringify(request))
  }
})

test('a body that could tell more is said to be unread', () => {
  const withBody = requests.filter(({ body }) => body !== null)
  assert.ok(withBody.length)
  for (const { wanted, ...request } of withBody) {
    assert.equal(featuresOf(request, new Set(wanted)).get('unread'), 'body')
  }
})

test('which predicates hold', () => {
  for (const { conditions, features, holds: expected } of predicates) {
    const found = holds(predicateOf(conditions), new Map(Object.entries(features)))
    assert.equal(found, expected, JSON.stringify([conditions, features]))
  }
})

test('contexts are signed character by character alike', () => {
  const keys = Keys.parse(edge.keys)
  for (const { experiment, arm, expires, faults, delay_ms: delayMs, lot, value } of edge.contexts) {
    const sign = () => encode(keys, { experiment, arm, expires, faults: faults.map(faultOf), delayMs, lot })
    if (value === null) assert.throws(sign, ContextError, experiment)
    else assert.equal(sign(), value)
  }
})

test('lengths are drawn alike', () => {
  const keys = Keys.parse(edge.keys)
  assert.ok(edge.lengths.length >= 300)
  for (const { fault, lot, milliseconds } of edge.lengths) {
    const what = { experiment: 'e', arm: 'treatment', expires: 1, faults: [faultOf(fault)], delayMs: 9_999_999, lot }
    const [, length] = /\.d.{8}(\d+)\./.exec(encode(keys, what))
    assert.equal(Number(length), milliseconds, `${fault} ${lot}`)
  }
})

test('our entries in the baggage', () => {
  for (const { header, values: expected, without: left } of edge.baggage) {
    assert.deepEqual([values(header), without(header)], [expected, left], JSON.stringify(header))
  }
})

test('allowances count alike', () => {
  for (const history of edge.allowances) {
    const allowances = new Allowances()
    const none = { counts: new Map(), asked: 0, late: 0 }
    let report = none
    for (const step of history) {
      const { experiment, arm } = step
      const mark = step.device && markOf(step.device)
      if (step.do === 'renew') {
        allowances.renew(Object.entries(step.members).map(([name, members]) => ({ experiment: name, members })))
      } else if (step.do === 'admit') {
        assert.equal(allowances.knows(experiment, arm, mark), step.knew)
        assert.equal(allowances.admit(experiment, arm, mark), step.answer)
      } else if (step.do === 'report') {
        report = allowances.report()
        assert.deepEqual(written(report.counts), step.answer)
      } else {
        allowances.settle(report)
        report = none
      }
      assert.equal(allowances.urgent, step.urgent, JSON.stringify(step))
    }
  }
})
