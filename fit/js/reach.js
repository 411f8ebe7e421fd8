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

const kinds = new Set()
const missed = new Set()
let timer
let pause = AGAIN

/**
 * Note that points of these kinds (`http`, `db`, …) can be made to fail in this process.
 * @param {...string} more
 */
export function reaches(...more) {
  const before = kinds.size
  for (const kind of more) kinds.add(kind)
  if (kinds.size > before) next(SETTLED)
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
  const unknown = [...missed].sort().map((library) => `${named}>unknown:${library}|none`)
  return ['1', `node/${VERSION}`, ...reached, ...unknown].join(' ')
}

function next(milliseconds) {
  clearTimeout(timer)
  timer = setTimeout(say, milliseconds).unref()
}

function say() {
  for (const kind of hookLoaded()) kinds.add(kind) // of what no request has asked yet
  const said = report()
  if (said === undefined) return
  pause = written('fit.reach', { 'fit.reach': said }) ? EVERY : Math.min(2 * pause, EVERY)
  next(pause)
}
