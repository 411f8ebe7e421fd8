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

/**
 * Package → its hook, the kind of its points, and what OpenTelemetry's instrumentations of it are called.
 * @type {Map<string, [(library: object) => void, string, ...string[]]>}
 */
const awaited = new Map([
  ['@grpc/grpc-js', [hookGrpc, 'rpc', 'grpc']],
  ['ioredis', [hookIoredis, 'db', 'ioredis']],
  ['kafkajs', [hookKafkajs, 'message', 'kafkajs']],
  ['pg', [hookPostgresql, 'db', 'pg']],
  ['redis', [hookRedis, 'db', 'redis', 'redis-4']],
])

/**
 * Hook what has been loaded since; returns the kind of points that there is since, and whose they are, of each library.
 * It is asked whenever a request comes that is to be obeyed, and before a report.
 */
export function hookLoaded() {
  const more = []
  for (const [name, [hook, ...points]] of awaited) {
    const library = loaded(name)
    if (library === undefined) continue
    awaited.delete(name)
    if (!library) continue
    hook(library)
    more.push(points)
  }
  return more
}
