/**
 * Reads failure contexts, `VERSION.KEY.EXPERIMENT.ARM.EXPIRY.FAULTS.MAC`: versions
 * differ in how the faults are written. See docs/failure-context.md.
 */

import { injectionOf, LATEST } from './kinds.js'

export const ENTRY = 'fit'
export const MAX_LENGTH = 4092
/** Seconds ahead that an expiry may lie: an hour, and a minute for clocks that differ. */
export const LONGEST = 3660

const FAULT = '(?:e[\\w-]{8}|d[\\w-]{8}[1-9][0-9]{0,6})(?:n[1-9][0-9]?)?'
const SHAPE = new RegExp(
  `^(?<version>[1-${LATEST}])\\.` + '(?<key>[\\w-]{1,16})\\.(?<experiment>[\\w-]{1,64})\\.(?<arm>[tc])' +
    '\\.(?<expiry>0|[1-9][0-9]{0,11})\\.(?<faults>[\\w~-]*)\\.(?<mac>[\\w-]{22})$',
)
const LIST = new RegExp(`^(?:${FAULT}(?:~${FAULT})*)?$`)
const GROUPS = /^(?:[\w-]+~(?:[\w-]{8})+(?:~[\w-]+~(?:[\w-]{8})+)*)?$/
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
 * @typedef {{kind: string, delayMs: number, first: number}} Injection
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
 * @param {number} [grace] seconds since its expiry for which it is read all the same; whoever gives any has to look at
 *   `expires`
 * @returns {FailureContext}
 * @throws {ContextError}
 */
export function decode(keys, value, now, grace = 0) {
  const read = parsed(value)
  if (!read) throw new ContextError('malformed', `not a failure context of version 1 to ${LATEST}`)
  const { key, experiment, arm, expiry, mac } = read.groups
  if (!keys.verify(value.slice(0, -mac.length - 1), key, mac)) {
    throw new ContextError('forged', `failure context of key ${key} does not verify`)
  }
  const expires = Number(expiry)
  if (!(expires + grace > now)) throw new ContextError('expired', `failure context expired at ${expires}`)
  if (expires - now > LONGEST) throw new ContextError('expired', `good for ${expires - now} s`)
  return {
    experiment,
    arm: arm === 't' ? 'treatment' : 'control',
    expires,
    injections: injectionsOf(read.listed),
  }
}

/**
 * The parts of a failure context, believed or not; undefined for what has not the form of one.
 * @param {string} value
 */
export function parsed(value) {
  const match = value.length <= MAX_LENGTH ? SHAPE.exec(value) : null
  const readable = match && (match.groups.version === '1' ? LIST : GROUPS).test(match.groups.faults)
  const listed = readable ? faultsOf(match.groups) : undefined
  return listed && { groups: match.groups, listed }
}

/** Every fault as [hash, injection]; undefined where one is of no kind. */
function faultsOf({ version, faults }) {
  if (!faults) return []
  return version === '1' ? faults.split('~').map(faultOf) : grouped(faults.split('~'), Number(version))
}

function faultOf(fault) {
  const [, kind, hash, delay, first] = PARTS.exec(fault)
  const word = kind === 'e' ? 'error' : 'delay'
  return [hash, { kind: word, delayMs: Number(delay), first: Number(first ?? 0) }]
}

function grouped(parts, version) {
  const listed = []
  for (let at = 0; at < parts.length; at += 2) {
    const injection = injectionOf(parts[at], version)
    if (!injection) return undefined
    for (const hash of parts[at + 1].match(/.{8}/g)) listed.push([hash, injection])
  }
  return listed
}

function injectionsOf(listed) {
  const injections = new Map()
  for (const [hash, injection] of listed) {
    if (injections.has(hash)) throw new ContextError('malformed', `two faults at point ${hash}`)
    injections.set(hash, injection)
  }
  return injections
}
