/** What is injected outlives whoever collects garbage. */

import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { install } from '../index.js'
import { within } from '../request.js'
import { verify } from '../runtime.js'
import { contextOf, FIT_KEYS } from './support/sign.js'

test('a connection of ours is not collected while undici has a timer on it', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  process.env.FIT_KEYS = FIT_KEYS
  subscribe('fit.fault', () => {})
  install('node')
  const context = verify(contextOf([['e', 'node>http:GET:127.0.0.1:39999/titles/*']]))
  for (let n = 0; n < 20; n++) {
    const answer = await within({ context, trace: {} }, () => fetch('http://127.0.0.1:39999/titles/1'))
    assert.equal(await answer.text(), 'fault injected')
    await turn()
    collect() // before the timer, which is of a millisecond
    const end = performance.now() + 3
    while (performance.now() < end);
    await pause(2) // an exception in the timer would fail this test
  }
})
