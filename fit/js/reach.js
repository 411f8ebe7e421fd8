/**
 * Saying what this process can make fail, as a span now and then: campaigns try nothing else
 * (docs/failure-context.md, "Reporting points"). Where no span is recorded nothing is said.
 */

import { hookLoaded } from './late.js'
import { rpcPoint } from './points.js'
import { written } from './proof.js'
import { service } from './runtime.js'

export const VERSION = '0.2.0' // as in package.json
const SETTLED = 3_000 // libraries are loaded one after the other: so long is waited for the next
const AGAIN = 5_000 // where a sampler has dropped it; then twice as long each time
const EVERY = 300_000

const OWN = 'fit' // what our own spans are of: whoever reports libraries reports it

const kinds = new Set()
const held = new Set([OWN])
const missed = new Set()
let timer
let pause = AGAIN

/**
 * Note that points of this kind (`http`, `db`, …) can be made to fail in this process.
 * @param {string} kind
 * @param {...string} libraries whose calls they are, as OpenTelemetry's instrumentations are called
 */
export function reaches(kind, ...libraries) {
  if (note(kind, libraries)) next(SETTLED)
}

function note(kind, libraries) {
  const before = kinds.size + held.size
  kinds.add(kind)
  for (const library of libraries) held.add(library)
  return kinds.size + held.size > before
}

/**
 * Note that this process makes calls by a library that is not known here: they carry no context.
 * @param {string} library
 */
export function misses(library) {
  if (missed.has(library)) return
  missed.add(library)
  next(SETTLED)
}

/** The report; undefined where nothing can be reached. */
export function report() {
  const caller = service()
  if (caller === undefined || !kinds.size) return undefined
  const named = rpcPoint(caller, '').split('>')[0]
  const reached = [...kinds].sort().map((kind) => `${named}>${kind}:*`)
  const libraries = [...held].sort().map((library) => `${named}>library:${library}`)
  const unknown = [...missed].sort().map((library) => `${named}>unknown:${library}|none`)
  return ['1', `node/${VERSION}`, ...reached, ...libraries, ...unknown].join(' ')
}

function next(milliseconds) {
  clearTimeout(timer)
  timer = setTimeout(say, milliseconds).unref()
}

function say() {
  for (const [kind, ...libraries] of hookLoaded()) note(kind, libraries) // of what no request has asked yet
  const said = report()
  if (said === undefined) return
  pause = written('fit.reach', { 'fit.reach': said }) ? EVERY : Math.min(2 * pause, EVERY)
  next(pause)
}
