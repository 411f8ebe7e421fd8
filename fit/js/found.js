/** Packages as the application has them. */

import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * A package; undefined where there is none. From this file it is not found where ours is a symbolic
 * link, so it is looked for from the program that was started and from the working directory as well.
 * @param {string} name
 */
export function found(name) {
  for (const from of [import.meta.url, process.argv[1], join(process.cwd(), 'package.json')]) {
    try {
      if (from) return createRequire(from)(name)
    } catch {
      continue // the next one
    }
  }
  return undefined
}
