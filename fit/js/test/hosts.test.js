/** Which hosts a failure context may be sent to: as every language has it. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { hostsOf, mayReach, passing } from '../hosts.js'

const { cases } = JSON.parse(readFileSync(new URL('../../protocol/vectors/hosts.json', import.meta.url), 'utf8'))

test('hosts are those of the vectors', () => {
  process.removeAllListeners('warning') // of entries that cannot be read
  const wrong = cases.filter(({ hosts, host, allowed }) => mayReach(host, hosts ?? undefined) !== allowed)
  assert.ok(cases.length > 300)
  assert.deepEqual(wrong, [])
})

test('our entry alone is withheld, and not where a signature covers it', () => {
  const signed = 'AWS4-HMAC-SHA256 Credential=k/eu/s3/aws4_request, SignedHeaders=baggage;host, Signature=f'
  for (const [hosts, authorization, left] of [
    [['10.0.0.1'], undefined, 'a=b,fit=x'], [['api.stripe.com'], undefined, 'a=b'],
    [['10.0.0.1', 'api.stripe.com'], undefined, 'a=b'], [['api.stripe.com'], signed, 'a=b,fit=x'],
    [['api.stripe.com'], signed.replace('baggage;', 'x-baggage;'), 'a=b'],
  ]) assert.equal(passing('a=b,fit=x', () => hosts, () => authorization), left)
})

test('what a proxy is asked for counts as well', () => {
  for (const [path, hosts] of [
    ['/titles/17', ['proxy']], ['http://api.stripe.com:80/v1', ['proxy', 'api.stripe.com']],
    ['HTTP://u:p@[fd00::1]:8080', ['proxy', '[fd00::1]']],
  ]) assert.deepEqual(hostsOf('proxy', path), hosts)
})
