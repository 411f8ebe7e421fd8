/** The request being served: its failure context, and its trace, for whatever runs in its name. */

import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * `value`: the entry in the baggage. `isOver`: whether it has been answered. What it started still runs in its name,
 * and works for others.
 * @typedef {{context: import('./context.js').FailureContext, value: string, trace: string|object,
 *   isOver?: () => boolean}} Served
 */

/** @type {AsyncLocalStorage<Served | {sends: Served | undefined} | undefined>} */
const storage = new AsyncLocalStorage()
const NAME = Symbol('fit.served')

/**
 * Run `work`, and everything it starts, in the name of a request; of none where `served` is
 * undefined.
 * @template T
 * @param {Served | undefined} served
 * @param {() => T} work
 * @returns {T}
 */
export function within(served, work) {
  return storage.run(served, work)
}

/**
 * Run `work`, which makes a call, in nobody's name. What it writes into the call is still the request's.
 * @template T
 * @param {() => T} work
 * @returns {T}
 */
export function apart(work) {
  return storage.run({ sends: sending() }, work)
}

/** @returns {Served | undefined} */
export function served() {
  const store = storage.getStore()
  return store?.context && store
}

/** The request that what is sent from here belongs to. @returns {Served | undefined} */
export function sending() {
  const store = storage.getStore()
  return store?.sends ?? served()
}

/**
 * Have what listens to an emitter run in the name of a request: a body is read in that of its connection, which is
 * nobody's. Said again, the last counts.
 * @param {import('node:events').EventEmitter | undefined} emitter
 * @param {Served | undefined} request
 */
export function listensFor(emitter, request) {
  if (!emitter?.emit || (!request && !(NAME in emitter))) return
  if (!(NAME in emitter)) {
    const { emit } = emitter
    emitter.emit = (...given) => storage.run(emitter[NAME], () => emit.apply(emitter, given))
  }
  emitter[NAME] = request
}

/**
 * The verified failure context of the request being served, if it carries one that still holds.
 * @returns {import('./context.js').FailureContext | undefined}
 */
export function current() {
  const context = served()?.context
  return context && context.expires > Date.now() / 1000 ? context : undefined
}
