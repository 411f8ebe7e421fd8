/** What is installed in this process: its name, its keys, and what it has verified already. */

import { ContextError, decode } from './context.js'
import { providedName } from './proof.js'

const REMEMBERED = 1024
/** Seconds for which a context that has run out is still told from none: its request goes on. */
const GRACE = 300

/** @type {{service: string | undefined, keys: import('./keys.js').Keys} | undefined} */
let runtime
/** @type {Map<string, import('./context.js').FailureContext | undefined>} */
const verified = new Map()

/**
 * @param {string | undefined} service undefined: as the tracer provider calls it
 * @param {import('./keys.js').Keys} keys
 */
export function activate(service, keys) {
  runtime = { service, keys }
  verified.clear()
}

/** Take `fit` out of this process again. */
export function deactivate() {
  runtime = undefined
  verified.clear()
}

/** This service's name; undefined where `fit` is not installed or has no key. */
export function service() {
  if (!runtime) return undefined
  runtime.service ??= providedName() // the provider may come after us
  return runtime.service ?? 'unknown_service'
}

/** The keys that this process trusts; undefined where `fit` is not installed or has no key. */
export function signingKeys() {
  return runtime?.keys
}

/**
 * Verify once, remember, and look at the expiry every time.
 * @param {string} value
 * @returns {import('./context.js').FailureContext | undefined}
 */
export function verify(value) {
  const found = recognize(value)
  return found && found.expires > Date.now() / 1000 ? found : undefined
}

/**
 * The same for a context that has run out within `GRACE`: nothing may be injected by that.
 * @param {string} value
 * @returns {import('./context.js').FailureContext | undefined}
 */
export function recognize(value) {
  if (!runtime) return undefined
  const now = Date.now() / 1000
  const found = verified.has(value) ? verified.get(value) : firstLook(value, now)
  return found && found.expires + GRACE > now ? found : undefined
}

function firstLook(value, now) {
  let found
  try {
    found = decode(runtime.keys, value, now, GRACE)
  } catch (error) {
    if (!(error instanceof ContextError)) throw error
  }
  if (verified.size >= REMEMBERED) verified.clear()
  verified.set(value, found)
  return found
}
