/** The request being served: its failure context, and its trace, for whatever runs in its name. */

import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * `over`: it has been answered. What it started still runs in its name, and works for others.
 * @typedef {{context: import('./context.js').FailureContext, trace: string|object, over?: boolean}} Served
 */

/** @type {AsyncLocalStorage<Served | undefined>} */
const storage = new AsyncLocalStorage()

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

/** @returns {Served | undefined} */
export function served() {
  return storage.getStore()
}

/**
 * The verified failure context of the request being served, if it carries one that still holds.
 * @returns {import('./context.js').FailureContext | undefined}
 */
export function current() {
  const context = storage.getStore()?.context
  return context && context.expires > Date.now() / 1000 ? context : undefined
}
