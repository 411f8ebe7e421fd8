/**
 * fetch as an injection point.
 *
 * A `delay` or a `timeout` hangs until the caller's AbortSignal fires and then rejects with its reason,
 * as fetch itself does; a caller that waits longer than a delay gets the real answer after it. Any other
 * kind is carried out on a connection of ours, which the client behind fetch reads.
 */

import { connector, possible } from './connection.js'
import { agentOfFetch } from './dispatcher.js'
import { aimed, fire } from './passage.js'
import { patienceOf } from './patience.js'
import { httpPoint } from './points.js'
import { apart, served } from './request.js'

const HOOKED = Symbol.for('fit.fetch')

/** Put the injection point around this process's fetch. Doing it again changes nothing. */
export function hookFetch() {
  const original = globalThis.fetch
  if (original[HOOKED]) return
  const Agent = agentOfFetch()
  const hooked = function fetch(input, init) {
    if (!served()) return original(input, init)
    const aim = aimed((name) => pointOf(name, input, init))
    if (aim?.injection.kind === 'slow') return original(input, init) // struck where the dispatcher takes it
    if (aim && !able(aim.injection, input, init, Agent)) return original(input, init)
    // beneath fetch stands the dispatcher's point: the call must not pass there again
    const go = (more) => apart(() => original(input, more ? { ...init, ...more } : init))
    const firing = aim && fire(aim)
    if (!firing) return go()
    if (['delay', 'timeout'].includes(firing.injection.kind) || signalOf(input, init)?.aborted) {
      return hung(firing, go, signalOf(input, init))
    }
    const connect = connector(firing, methodOf(input, init).toUpperCase())
    return go({ dispatcher: new Agent({ connect, keepAliveTimeout: 1 }) }) // one call, and it is closed
  }
  hooked[HOOKED] = true
  globalThis.fetch = hooked
}

/** Whether this call can fail in this way natively. */
function able({ kind, delayMs }, input, init, Agent) {
  if (kind === 'timeout') return patienceOf(signalOf(input, init)) <= delayMs
  return kind === 'delay' || Boolean(Agent && possible(kind, methodOf(input, init).toUpperCase(), urlOf(input).hostname))
}

function signalOf(input, init) {
  return init?.signal ?? (input instanceof Request ? input.signal : undefined)
}

function methodOf(input, init) {
  return init?.method ?? (input instanceof Request ? input.method : 'GET')
}

function urlOf(input) {
  return new URL(input instanceof Request ? input.url : String(input))
}

function pointOf(name, input, init) {
  const url = urlOf(input)
  const port = url.port ? Number(url.port) : null
  return httpPoint(name, methodOf(input, init), url.hostname, port, url.pathname)
}

async function hung({ injection, proof }, go, signal) {
  try {
    await hang(injection.delayMs, signal)
  } catch (reason) {
    proof.end({ type: reason?.name ?? 'AbortError' })
    throw reason
  }
  proof.end()
  return go()
}

/** Wait; rejects with the signal's reason as soon as the caller gives up. */
function hang(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const giveUp = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', giveUp)
      resolve()
    }, milliseconds)
    signal?.addEventListener('abort', giveUp, { once: true })
  })
}
