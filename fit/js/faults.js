/** Faults as rules name them, `kind@point` or `kind:first@point`: what fit/protocol/faults.py reads. */

import { isKind, takesArgument } from './kinds.js'

const FIRST = /^[1-9][0-9]?$/

/**
 * `first`: only so many calls of a request are hit; 0 is every call.
 * @typedef {{point: string, kind: string, first: number}} Fault
 */

/**
 * @param {string} text
 * @returns {Fault | undefined} undefined for what names none
 */
export function faultOf(text) {
  const at = text.indexOf('@')
  const point = text.slice(at + 1)
  if (at < 0 || !point) return undefined
  const [kind, number] = divided(text.slice(0, at).split(':'))
  if (!isKind(kind) || (number !== undefined && !FIRST.test(number))) return undefined
  return { point, kind, first: Number(number ?? 0) }
}

/** What stands before `@`: the kind, and the number of calls if there is one. */
function divided(parts) {
  const kept = takesArgument(parts[0]) || namesLengths(parts) ? 2 : 1
  const number = parts.length > kept ? parts.slice(kept).join(':') : undefined
  return [parts.slice(0, kept).join(':'), number]
}

/** `delay:0.5..2`, whose length is drawn, and not `delay:2`, which hits two calls. */
function namesLengths([word, argument]) {
  return word === 'delay' && Boolean(argument) && !/^-*\p{Nd}+$/u.test(argument)
}
