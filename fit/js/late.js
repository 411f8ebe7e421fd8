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

/** @type {Map<string, (library: object) => void>} */
const awaited = new Map([
  ['@grpc/grpc-js', hookGrpc],
  ['ioredis', hookIoredis],
  ['kafkajs', hookKafkajs],
  ['pg', hookPostgresql],
  ['redis', hookRedis],
])

/** Hook what has been loaded since. It is asked whenever a request comes that is to be obeyed. */
export function hookLoaded() {
  for (const [name, hook] of awaited) {
    const library = loaded(name)
    if (library === undefined) continue
    awaited.delete(name)
    if (library) hook(library)
  }
}
