/**
 * Libraries that are hooked once the application has loaded them. They are not loaded for it:
 * OpenTelemetry's instrumentations see only what is loaded after them.
 */

import { loaded } from './found.js'
import { hookGrpc } from './grpc.js'
import { hookIoredis } from './ioredis.js'
import { hookKafkajs } from './kafkajs.js'
import { hookPostgresql } from './postgresql.js'
import { hookRedis } from './redis.js'

/** @type {Map<string, [string, (library: object) => void]>} package → the kind of its points, its hook */
const awaited = new Map([
  ['@grpc/grpc-js', ['rpc', hookGrpc]],
  ['ioredis', ['db', hookIoredis]],
  ['kafkajs', ['message', hookKafkajs]],
  ['pg', ['db', hookPostgresql]],
  ['redis', ['db', hookRedis]],
])

/**
 * Hook what has been loaded since; returns the kinds of points that there are since. It is asked whenever a
 * request comes that is to be obeyed, and before a report.
 */
export function hookLoaded() {
  const more = []
  for (const [name, [kind, hook]] of awaited) {
    const library = loaded(name)
    if (library === undefined) continue
    awaited.delete(name)
    if (!library) continue
    hook(library)
    more.push(kind)
  }
  return more
}
