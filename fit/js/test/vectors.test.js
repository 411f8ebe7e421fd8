import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { ContextError, decode } from '../context.js'
import { KeyFormatError, Keys } from '../keys.js'
import {
  commandPoint, connectPoint, databasePoint, httpPoint, messagePoint, pointHash, rpcPoint,
} from '../points.js'

function vectors(file) {
  return JSON.parse(readFileSync(new URL(`../../protocol/vectors/${file}`, import.meta.url), 'utf8'))
}

const contexts = vectors('contexts.json')
const points = vectors('points.json')

function read({ keys, value, now }) {
  try {
    const { experiment, arm, expires, injections } = decode(Keys.parse(keys), value, now)
    const faults = [...injections]
      .map(([hash, { kind, delayMs, first }]) => ({ hash, kind, delay_ms: delayMs, first }))
      .sort((a, b) => (a.hash < b.hash ? -1 : 1))
    return { result: 'accepted', context: { experiment, arm, expires, faults } }
  } catch (error) {
    if (!(error instanceof ContextError)) throw error
    return { result: error.reason, context: undefined }
  }
}

test('kinds are those of all languages', () => {
  const own = readFileSync(new URL('../kinds.json', import.meta.url), 'utf8')
  assert.equal(own, readFileSync(new URL('../../protocol/kinds.json', import.meta.url), 'utf8'), 'run docs/generate.py')
})

test('contexts', () => {
  assert.ok(contexts.cases.length > 100)
  for (const vector of contexts.cases) {
    const { result, context } = vector
    assert.deepEqual(read(vector), { result, context }, vector.name)
  }
})

test('keys', () => {
  for (const { text, signing, ids } of contexts.readable_keys) {
    assert.deepEqual(Keys.parse(text).ids, ids)
    assert.equal(Keys.parse(text).ids[0], signing)
  }
  for (const text of contexts.unreadable_keys) {
    assert.throws(() => Keys.parse(text), KeyFormatError, text)
  }
})

test('names of points', () => {
  assert.ok(points.http.length > 50)
  for (const { caller, method, host, port, path, template, name, hash } of points.http) {
    const ours = httpPoint(caller, method, host, port, path, template)
    assert.deepEqual([ours, pointHash(ours)], [name, hash])
  }
  const others = {
    rpc: ({ caller, method, peer }) => rpcPoint(caller, method, peer),
    db: ({ caller, statement, peer }) => databasePoint(caller, statement, peer),
    connect: ({ caller, peer }) => connectPoint(caller, peer),
    command: ({ caller, command, host, port }) => commandPoint(caller, command, host, port),
    message: ({ caller, operation, system, destination }) => (
      messagePoint(caller, operation, system, destination)
    ),
  }
  for (const [kind, named] of Object.entries(others)) {
    assert.ok(points[kind].length >= 5)
    for (const vector of points[kind]) {
      const ours = named(vector)
      assert.deepEqual([ours, pointHash(ours)], [vector.name, vector.hash])
    }
  }
  for (const { name, hash } of points.hashes) assert.equal(pointHash(name), hash)
})
