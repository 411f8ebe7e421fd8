/**
 * The clock that leases run on: it only ever goes forward, at one second a second. Wall clocks are set, stepped
 * and wrong; a lease that ended by one would be prolonged by a jump.
 */

import { platform, uptime } from 'node:os'

/**
 * Seconds from an arbitrary start; on Linux, where the machine's uptime is such a clock, those spent in
 * suspend included.
 * @type {() => number}
 */
export const steady = platform() === 'linux' ? uptime : () => performance.now() / 1000
