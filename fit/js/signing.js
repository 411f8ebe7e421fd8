/**
 * Writes failure contexts, character by character what fit/protocol/context.py writes of the same: an edge signs what
 * its rules say.
 */

import { ContextError, parsed } from './context.js'
import { familyOf, isLate, recordOf, saidOf } from './kinds.js'
import { drawn } from './lengths.js'
import { byCodePoints, pointHash } from './points.js'

/**
 * Sign a failure context.
 * @param {import('./keys.js').Keys} keys
 * @param {{experiment: string, arm: 'treatment' | 'control', expires: number, delayMs: number,
 *   faults: import('./faults.js').Fault[], lot?: string}} what `expires` in Unix seconds; `delayMs`: the
 *   longest that a call may hang; `lot`: what lengths are drawn by, the request
 * @returns {string}
 * @throws {ContextError} where it would not be read back
 */
export function encode(keys, { experiment, arm, expires, faults, delayMs, lot = '' }) {
  const [version, listed] = written(faults, delayMs, lot)
  const payload = [version, keys.signingId, experiment, arm[0], expires, listed].join('.')
  const value = `${payload}.${keys.sign(payload)}`
  if (!parsed(value)) throw new ContextError('malformed', 'this does not fit a failure context')
  return value
}

/** The first version that can say these faults, and how it says them. */
function written(faults, delayMs, lot) {
  const each = strongest(faults).map((fault) => [fault, lengthOf(fault, delayMs, lot)])
  if (each.every(([{ kind }]) => ['error', 'delay'].includes(familyOf(kind)))) {
    return ['1', each.map(([fault, length]) => inOne(fault, length)).join('~')]
  }
  const groups = new Map()
  for (const [fault, length] of each) {
    const how = wayOf(fault, length)
    groups.set(how, (groups.get(how) ?? '') + pointHash(fault.point))
  }
  const version = Math.max(2, ...each.map(([{ kind }]) => recordOf(kind).version))
  return [String(version), [...groups].map((group) => group.join('~')).join('~')]
}

function inOne({ kind, point, first }, length) {
  return `${kind[0]}${pointHash(point)}${isLate(kind) ? length : ''}${first ? `n${first}` : ''}`
}

/** How a group of points fails, from version 2 on. */
function wayOf({ kind, first }, length) {
  const how = isLate(kind) ? `${familyOf(kind)}-${length}` : kind.replace(':', '-')
  return first ? `${how}-n${first}` : how
}

/** How many milliseconds a fault may take: `delayMs`, or less where its kind says so. */
function lengthOf({ kind, point }, delayMs, lot) {
  const wanted = saidOf(kind)
  if (!wanted) return delayMs
  return Math.min(Math.max(1, Math.round(1000 * drawn(wanted, `${lot}\n${point}`))), delayMs)
}

/** One fault a point, in a fixed order: a reader refuses a point that is named twice. */
function strongest(faults) {
  const weakestFirst = [...faults].sort((a, b) => (
    strengthOf(a.kind) - strengthOf(b.kind) || byCodePoints(a.kind, b.kind)
      || (a.first === 0) - (b.first === 0) || a.first - b.first
  ))
  const kept = new Map(weakestFirst.map((fault) => [pointHash(fault.point), fault]))
  return [...kept.values()].sort((a, b) => byCodePoints(a.point, b.point))
}

/** A delay may be outlasted, one that says a length is shorter; `error` says the least of how it looks. */
function strengthOf(kind) {
  return saidOf(kind) ? 0 : ({ delay: 1, timeout: 2, error: 4 }[kind] ?? 3)
}
