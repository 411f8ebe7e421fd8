/** Reads failure contexts: `1.KEY.EXPERIMENT.ARM.EXPIRY.FAULTS.MAC`, see docs/failure-context.md. */

export const ENTRY = 'fit'
export const MAX_LENGTH = 4092

const FAULT = '(?:e[\\w-]{8}|d[\\w-]{8}[1-9][0-9]{0,6})(?:n[1-9][0-9]?)?'
const SHAPE = new RegExp(
  '^1\\.(?<key>[\\w-]{1,16})\\.(?<experiment>[\\w-]{1,64})\\.(?<arm>[tc])' +
    `\\.(?<expiry>0|[1-9][0-9]{0,11})\\.(?<faults>(?:${FAULT}(?:~${FAULT})*)?)\\.(?<mac>[\\w-]{22})$`,
)
const PARTS = /^([ed])([\w-]{8})([0-9]*)(?:n([0-9]+))?$/

/** A failure context that must not be obeyed. */
export class ContextError extends Error {
  /** @param {'malformed'|'forged'|'expired'} reason @param {string} message */
  constructor(reason, message) {
    super(message)
    this.reason = reason
  }
}

/**
 * What a failure context asks of one point. `first`: only so many calls are hit; 0 is every call.
 * @typedef {{kind: 'error'|'delay', delayMs: number, first: number}} Injection
 *
 * A verified failure context. `expires` is in Unix seconds, `injections` by hash of point.
 * @typedef {{experiment: string, arm: 'treatment'|'control', expires: number,
 *   injections: ReadonlyMap<string, Injection>}} FailureContext
 */

/**
 * Verify and read a failure context. The MAC is checked before anything else is believed.
 * @param {import('./keys.js').Keys} keys
 * @param {string} value
 * @param {number} now Unix seconds
 * @returns {FailureContext}
 * @throws {ContextError}
 */
export function decode(keys, value, now) {
  const match = value.length <= MAX_LENGTH ? SHAPE.exec(value) : null
  if (!match) throw new ContextError('malformed', 'not a failure context of version 1')
  const { key, experiment, arm, expiry, faults, mac } = match.groups
  if (!keys.verify(value.slice(0, -mac.length - 1), key, mac)) {
    throw new ContextError('forged', `failure context of key ${key} does not verify`)
  }
  const expires = Number(expiry)
  if (!(expires > now)) throw new ContextError('expired', `failure context expired at ${expires}`)
  return {
    experiment,
    arm: arm === 't' ? 'treatment' : 'control',
    expires,
    injections: injectionsOf(faults),
  }
}

function injectionsOf(faults) {
  const injections = new Map()
  for (const fault of faults ? faults.split('~') : []) {
    const [, kind, hash, delay, first] = PARTS.exec(fault)
    if (injections.has(hash)) throw new ContextError('malformed', `two faults at point ${hash}`)
    injections.set(hash, {
      kind: kind === 'e' ? 'error' : 'delay',
      delayMs: Number(delay),
      first: Number(first ?? 0),
    })
  }
  return injections
}
