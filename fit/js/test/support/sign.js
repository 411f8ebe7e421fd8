/** What a signer does, for tests: the product's signer is fit/context.py. */

import { createHmac } from 'node:crypto'

import { pointHash } from '../../points.js'

export const KEY = { id: 'k1', secret: '0123456789abcdef' }
export const FIT_KEYS = `${KEY.id}:${KEY.secret}`

export function sign(payload, secret = KEY.secret) {
  const digest = createHmac('sha256', secret).update(payload).digest()
  return `${payload}.${digest.subarray(0, 16).toString('base64url')}`
}

/** A signed context that holds for a minute; `faults` are [kind, point, suffix]. */
export function contextOf(faults, { arm = 't', seconds = 60, key = KEY, experiment = 'e7c1' } = {}) {
  const expires = Math.ceil(Date.now() / 1000) + seconds
  const listed = faults.map(([kind, point, suffix = '']) => `${kind}${pointHash(point)}${suffix}`)
  return sign(`1.${key.id}.${experiment}.${arm}.${expires}.${listed.join('~')}`, key.secret)
}
