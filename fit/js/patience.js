/** How long callers wait: what their signals do not tell, but who makes them. */

const HOOKED = Symbol.for('fit.patience')

/** @type {WeakMap<AbortSignal, number>} when a signal fires, in Unix milliseconds */
const deadlines = new WeakMap()

/** Remember from now on when signals with a timeout fire. Doing it again changes nothing. */
export function watchSignals() {
  const { timeout, any } = AbortSignal
  if (timeout[HOOKED]) return
  AbortSignal.timeout = (milliseconds) => {
    const signal = timeout.call(AbortSignal, milliseconds)
    deadlines.set(signal, Date.now() + milliseconds)
    return signal
  }
  AbortSignal.timeout[HOOKED] = true
  if (!any) return
  AbortSignal.any = (signals) => {
    const listed = [...signals]
    const first = Math.min(...listed.map((each) => deadlines.get(each) ?? Infinity))
    const signal = any.call(AbortSignal, listed)
    if (first < Infinity) deadlines.set(signal, first)
    return signal
  }
}

/**
 * For how many milliseconds a caller with this signal still waits; Infinity where nobody can tell.
 * @param {AbortSignal | undefined | null} signal
 */
export function patienceOf(signal) {
  return signal ? (deadlines.get(signal) ?? Infinity) - Date.now() : Infinity
}
