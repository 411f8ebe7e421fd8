import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'

import { Keys } from '../keys.js'
import { pointHash } from '../points.js'
import { activate, deactivate, verify } from '../runtime.js'
import { contextOf, FIT_KEYS, KEY, sign } from './support/sign.js'

const FORGERIES = 10_000
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-'

beforeEach(() => activate('api', Keys.parse(FIT_KEYS)))
afterEach(deactivate)

/** A generator of numbers below n that gives the same ones every time (mulberry32). */
function draws(seed) {
  let state = seed
  return (n) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % n
  }
}

function* forgeries() {
  const draw = draws(6)
  const letter = () => ALPHABET[draw(ALPHABET.length)]
  for (;;) {
    const faults = [['e', `p${draw(500)}`], ['d', 'cache', '1500'], ['e', 'db', 'n2']]
    const good = contextOf(faults, { arm: 'tc'[draw(2)] })
    const at = draw(good.length)
    const longer = good.split('.')
    longer[4] = String(Number(longer[4]) + 1 + draw(10 ** 6))
    const many = Array.from({ length: 420 + draw(1000) }, (_, i) => `e${pointHash(`p${i}`)}`)
    yield* [
      ['mutated', good.slice(0, at) + letter() + good.slice(at + 1)],
      ['mutated', good.slice(0, at) + good.slice(at + 1)],
      ['mutated', good.slice(0, at) + letter() + good.slice(at)],
      ['mutated', longer.join('.')],
      ['expired', contextOf(faults, { seconds: -1 - draw(3600) })],
      ['wrong key', contextOf(faults, { key: { ...KEY, secret: 'not-the-right-key' } })],
      ['unknown key', contextOf(faults, { key: { ...KEY, id: 'k2' } })],
      ['truncated', good.slice(0, at)],
      ['truncated', good.slice(at + 1)],
      ['oversized', good + letter().repeat(1 + draw(9000))],
      ['oversized', sign(`1.k1.e1.t.9999999999.${many.join('~')}`)],
    ].filter(([, value]) => value !== good)
  }
}

test('of ten thousand forgeries none injects', () => {
  let count = 0
  for (const [how, value] of forgeries()) {
    if (count++ === FORGERIES) break
    assert.equal(verify(value), undefined, `${how}: ${value}`)
  }
})

test('a context obeyed before its expiry is refused after it', async () => {
  const value = contextOf([['e', 'p']], { seconds: 0 }) // ends with this second
  await new Promise((resolve) => setTimeout(resolve, 1010))
  const fresh = contextOf([['e', 'p']], { seconds: 0 })
  assert.equal(verify(value), undefined)
  assert.ok(verify(fresh))
  await new Promise((resolve) => setTimeout(resolve, 1010))
  assert.equal(verify(fresh), undefined)
})

test('without a key no context is obeyed', () => {
  const value = contextOf([['e', 'p']])
  assert.ok(verify(value))
  deactivate()
  assert.equal(verify(value), undefined)
})
