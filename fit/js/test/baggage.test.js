import assert from 'node:assert/strict'
import { test } from 'node:test'

import { find, without } from '../baggage.js'

for (const [header, value, rest] of [
  ['', undefined, ''],
  ['a=b', undefined, 'a=b'],
  ['fit=1.2', '1.2', ''],
  ['a=b,fit=1.2,c=d', '1.2', 'a=b,c=d'],
  ['a=b, fit = 1.2 ;p=q', '1.2', 'a=b'],
  ['a=b,%66it=1.2', '1.2', 'a=b'],
  ['FIT=1.2,a=fit', '1.2', 'a=fit'],
  ['fit=1.2,fit=1.3', undefined, ''],
  ['fit2=1.2,a=fit=1', undefined, 'fit2=1.2,a=fit=1'],
  ['fit;p=1,a=b', 'fit', 'a=b'],
]) {
  test(`baggage ${JSON.stringify(header)}`, () => {
    assert.equal(find(header), value)
    assert.equal(without(header), rest)
  })
}
