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

const { cache } = createRequire(import.meta.url)
/** @type {Map<string, string[]>} package → the files that it would be, looked for once */
const files = new Map()

/**
 * A package if the application has loaded it already; null where it has none that it could load.
 * @param {string} name
 */
export function loaded(name) {
  if (!files.has(name)) files.set(name, filesOf(name))
  for (const file of files.get(name)) {
    const { exports } = cache[file] ?? {}
    if (exports) return exports
  }
  return files.get(name).length ? undefined : null
}

function filesOf(name) {
  return requires().flatMap((require) => {
    try {
      return [require.resolve(name)]
    } catch {
      return []
    }
  })
}

/** OpenTelemetry's API as the application has it; undefined where it has none. */
export const api = found('@opentelemetry/api')

function requires() {
  const from = [import.meta.url, process.argv[1], join(process.cwd(), 'package.json')]
  return from.filter(Boolean).map((each) => createRequire(each))
}
