/**
 * fetch as an injection point.
 *
 * `error` is answered with status 503, `status:N` with N. `refused` rejects as fetch does where nobody
 * listens. `delay` hangs until the caller's
 * AbortSignal fires and then rejects with its reason, as fetch itself does; a caller that waits longer
 * than the delay gets the real answer after it. For every other kind the call goes through and nothing
 * is claimed. Calls made with node:http directly are not injection points.
 */

import { STATUS_CODES } from 'node:http'
import { constants } from 'node:os'

import { admits } from './occurrence.js'
import { httpPoint, pointHash } from './points.js'
import { open } from './proof.js'
import { current, served } from './request.js'
import { service } from './runtime.js'

const HOOKED = Symbol.for('fit.fetch')
const BODY = 'fault injected'

/** Put the injection point around this process's fetch. Doing it again changes nothing. */
export function hookFetch() {
  const original = globalThis.fetch
  if (original[HOOKED]) return
  const hooked = function fetch(input, init) {
    const firing = served() && decide(input, init)
    return firing ? carryOut(firing, original, input, init) : original(input, init)
  }
  hooked[HOOKED] = true
  globalThis.fetch = hooked
}

/** What is to happen to this call; undefined for nothing. Never throws. */
function decide(input, init) {
  try {
    const context = current()
    const name = service()
    if (!context || name === undefined) return undefined
    const point = pointOf(name, input, init)
    const injection = context.injections.get(pointHash(point))
    const proof = injection && able(injection) && open(point, context.experiment)
    return proof && fire(context, injection, point, proof)
  } catch {
    return undefined // a fault of ours must never become a fault of the host's
  }
}

/** Whether fetch can fail in this way natively. */
function able({ kind }) {
  return ['error', 'delay', 'refused'].includes(kind) || kind.startsWith('status:')
}

function pointOf(name, input, init) {
  const isRequest = input instanceof Request
  const url = new URL(isRequest ? input.url : String(input))
  const method = init?.method ?? (isRequest ? input.method : 'GET')
  return httpPoint(name, method, url.hostname, url.port ? Number(url.port) : null, url.pathname)
}

function fire(context, injection, point, proof) {
  if (injection.first && !admits(served().trace, point, injection.first)) {
    proof.letThrough(injection.kind)
  } else if (context.arm === 'control') {
    proof.wouldFire(injection.kind)
  } else {
    proof.fired(injection.kind)
    return { injection, proof }
  }
  proof.end()
  return undefined
}

async function carryOut({ injection, proof }, original, input, init) {
  const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
  if (injection.kind === 'delay' || signal?.aborted) {
    try {
      await hang(injection.delayMs, signal)
    } catch (reason) {
      proof.end({ type: reason?.name ?? 'AbortError' })
      throw reason
    }
    proof.end()
    return original(input, init)
  }
  if (injection.kind === 'refused') {
    proof.end({ type: 'TypeError' })
    throw refused(input)
  }
  const status = injection.kind === 'error' ? 503 : Number(injection.kind.slice('status:'.length))
  proof.end({ status, type: String(status) })
  return new Response(BODY, {
    status,
    statusText: STATUS_CODES[status] ?? '',
    headers: { 'content-type': 'text/plain' },
  })
}

/** What fetch rejects with where nobody listens. */
function refused(input) {
  const url = new URL(input instanceof Request ? input.url : String(input))
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const cause = new Error(`connect ECONNREFUSED ${url.hostname}:${port}`)
  Object.assign(cause, {
    errno: -constants.errno.ECONNREFUSED,
    code: 'ECONNREFUSED',
    syscall: 'connect',
    address: url.hostname,
    port,
  })
  return new TypeError('fetch failed', { cause })
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
