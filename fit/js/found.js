/** Packages as the application has them. */

import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * A package; undefined where there is none. From this file it is not found where ours is a symbolic
 * link, so it is looked for from the program that was started and from the working directory as well.
 * @param {string} name
 */
export function found(name) {
  for (const require of requires()) {
    try {
      return require(name)
    } catch {
      continue // the next one
    }
  }
  return undefined
}

/**
 * A package if the application has loaded it already; null where it has none that it could load.
 * @param {string} name
 */
export function loaded(name) {
  let there = null
  for (const require of requires()) {
    try {
      const { exports } = require.cache[require.resolve(name)] ?? {}
      if (exports) return exports
      there = undefined
    } catch {
      continue // the next one
    }
  }
  return there
}

function requires() {
  const from = [import.meta.url, process.argv[1], join(process.cwd(), 'package.json')]
  return from.filter(Boolean).map((each) => createRequire(each))
}
