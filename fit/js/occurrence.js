/**
 * Counts calls, for faults that hit only the first few of a request.
 *
 * Calls are counted for each request (trace) and point, in one process: the replicas of a service
 * do not know of each other.
 */

const REMEMBERED = 4096

/** @type {Map<string|object, Map<string, number>>} */
const counts = new Map()

/**
 * Count this call; whether it is among the `first`.
 * @param {string|object} trace @param {string} point @param {number} first
 */
export function admits(trace, point, first) {
  const calls = counts.get(trace) ?? new Map()
  counts.delete(trace)
  counts.set(trace, calls) // the longest untouched is forgotten first
  if (counts.size > REMEMBERED) counts.delete(counts.keys().next().value)
  const count = (calls.get(point) ?? 0) + 1
  calls.set(point, count)
  return count <= first
}
