/**
 * The kinds of fault: how a call fails, as its caller sees it. `kinds.json` has what is known of each, for all
 * languages, and fit/protocol/kinds.py says what its fields mean.
 */

import { readFileSync } from 'node:fs'

import { lengthsOf } from './lengths.js'

/** The word with which a kind begins → what is known of it. */
const RECORDS = JSON.parse(readFileSync(new URL('kinds.json', import.meta.url), 'utf8')).kinds
const FORMS = Object.fromEntries(
  Object.entries(RECORDS)
    .filter(([, { argument }]) => argument && !argument.optional)
    .map(([word, { argument }]) => [word, formOf(argument)]),
)
const IPV4 = /^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$/
const MILLISECONDS = /^[1-9][0-9]{0,6}$/
const COUNT = /^n[1-9][0-9]?$/

/** The latest version of failure contexts. */
export const LATEST = Math.max(...Object.values(RECORDS).map(({ version }) => version))

function formOf({ among, pattern }) {
  if (!among && !pattern) return { test: (argument) => lengthsOf(argument) !== undefined }
  return new RegExp(`^(?:${pattern ?? among.join('|')})$`)
}

/** What is known of a kind; nothing of what is none. */
export function recordOf(kind) {
  const word = familyOf(kind)
  return Object.hasOwn(RECORDS, word) ? RECORDS[word] : {}
}

/**
 * Read how a group of points fails, as in `status-503-n2`; undefined for no kind of this version.
 * @param {string} how
 * @param {number} version 2 or later
 * @returns {import('./context.js').Injection | undefined}
 */
export function injectionOf(how, version) {
  const [word, ...rest] = how.split('-')
  let kind = word
  let delayMs = 0
  if (!(recordOf(word).version <= version)) return undefined
  if (isLate(word)) {
    if (!MILLISECONDS.test(rest[0] ?? '')) return undefined
    delayMs = Number(rest.shift())
  } else if (Object.hasOwn(FORMS, word)) {
    if (!FORMS[word].test(rest[0] ?? '')) return undefined
    kind = `${word}:${rest.shift()}`
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
  if (word === text) return Object.hasOwn(RECORDS, word)
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
  return Boolean(recordOf(kind).late)
}

/** What a kind says of how long it takes: by what a delay is drawn, over what a slow body comes; else empty. */
export function saidOf(kind) {
  return recordOf(kind).outlasted ? kind.slice(familyOf(kind).length + 1) : ''
}

/** Whether another length is drawn for each request. */
export function draws(kind) {
  return isDrawn(saidOf(kind))
}

function isDrawn(lengths) {
  return lengths.includes('..')
}

/** Whether a kind is a connection to this host that cannot be made: of a name only where it has one. */
export function connecting(kind, host) {
  const { connecting, named } = recordOf(kind)
  return Boolean(connecting) && (!named || (Boolean(host) && !host.includes(':') && !IPV4.test(host)))
}
