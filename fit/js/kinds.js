/** The kinds of fault, as fit/protocol/kinds.py has them: how a call fails, as its caller sees it. */

import { lengthsOf } from './lengths.js'

const ALONE = new Set([
  'error', 'delay', 'refused', 'reset', 'timeout', 'empty', 'truncated', 'corrupt',
])
const GRPC = [
  'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS',
  'PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE',
  'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED',
]
const FORMS = {
  status: /^[45][0-9]{2}$/,
  grpc: new RegExp(`^(?:${GRPC.join('|')})$`),
  sql: /^(?:deadlock|serialization|lost|readonly)$/,
  redis: /^(?:loading|readonly|lost)$/,
  exception: /^[A-Za-z_][A-Za-z0-9_]{0,39}$/,
  slow: { test: (argument) => lengthsOf(argument) !== undefined },
}
const MILLISECONDS = /^[1-9][0-9]{0,6}$/
const COUNT = /^n[1-9][0-9]?$/

/**
 * Read how a group of points fails, as in `status-503-n2`; undefined for no kind of this version.
 * @param {string} how
 * @param {string} version 2 or 3
 * @returns {import('./context.js').Injection | undefined}
 */
export function injectionOf(how, version) {
  const [word, ...rest] = how.split('-')
  let kind = word
  let delayMs = 0
  if (word === 'slow' && version === '2') return undefined
  if (isLate(word)) {
    if (!MILLISECONDS.test(rest[0] ?? '')) return undefined
    delayMs = Number(rest.shift())
  } else if (Object.hasOwn(FORMS, word)) {
    if (!FORMS[word].test(rest[0] ?? '')) return undefined
    kind = `${word}:${rest.shift()}`
  } else if (!ALONE.has(word)) {
    return undefined
  }
  if (rest.length > 1 || (rest.length && !COUNT.test(rest[0]))) return undefined
  return { kind, delayMs, first: rest.length ? Number(rest[0].slice(1)) : 0 }
}

/**
 * Whether a text names a kind as rules do, for instance `status:503` or `delay:0.5..2`.
 * @param {string} text
 */
export function isKind(text) {
  const word = familyOf(text)
  const argument = text.slice(word.length + 1)
  if (takesArgument(word)) return FORMS[word].test(argument)
  if (word === text) return ALONE.has(word)
  return word === 'delay' && isDrawn(argument) && lengthsOf(argument) !== undefined
}

/** The word with which a kind begins. */
export function familyOf(kind) {
  return kind.split(':', 1)[0]
}

/** Whether a kind that begins with this word always says more after a colon. */
export function takesArgument(word) {
  return Object.hasOwn(FORMS, word)
}

/** Whether a kind takes its time. */
export function isLate(kind) {
  return ['delay', 'timeout', 'slow'].includes(familyOf(kind))
}

/** What a kind says of how long it takes: by what a delay is drawn, over what a slow body comes; else empty. */
export function saidOf(kind) {
  const word = familyOf(kind)
  return ['delay', 'slow'].includes(word) ? kind.slice(word.length + 1) : ''
}

/** Whether another length is drawn for each request. */
export function draws(kind) {
  return isDrawn(saidOf(kind))
}

function isDrawn(lengths) {
  return lengths.includes('..')
}
