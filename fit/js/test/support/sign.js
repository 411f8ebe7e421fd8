/** What a signer does, for tests: the product's signer is fit/protocol/context.py. */

import { createHmac } from 'node:crypto'

import { pointHash } from '../../points.js'

export const KEY = { id: 'k1', secret: '0123456789abcdef' }
export const FIT_KEYS = `${KEY.id}:${KEY.secret}`

export function sign(payload, secret = KEY.secret) {
  const digest = createHmac('sha256', secret).update(payload).digest()
  return `${payload}.${digest.subarray(0, 16).toString('base64url')}`
}

/** A signed context of version 1 that holds for a minute; `faults` are [kind, point, suffix]. */
export function contextOf(faults, options) {
  const listed = faults.map(([kind, point, suffix = '']) => `${kind}${pointHash(point)}${suffix}`)
  return written('1', listed, options)
}

/** The same of version 4; `faults` are [how, point]. */
export function contextOfKinds(faults, options) {
  return written('4', faults.map(([how, point]) => `${how}~${pointHash(point)}`), options)
}

function written(
  version, listed, { arm = 't', seconds = 60, key = KEY, experiment = 'e7c1' } = {},
) {
  const expires = Math.ceil(Date.now() / 1000) + seconds
  return sign(`${version}.${key.id}.${experiment}.${arm}.${expires}.${listed.join('~')}`, key.secret)
}
