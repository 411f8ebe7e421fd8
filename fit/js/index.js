/**
 * fit for Node: a reader of failure contexts (docs/failure-context.md), without dependencies.
 *
 *     import { failureContext, install } from 'ldfi-fit'
 *
 *     install()                  // calls become injection points; nothing without FIT_KEYS
 *     app.use(failureContext)    // Express, or any server of (request, response, next)
 */

import { hookFetch } from './fetch.js'
import { hookHttp } from './http.js'
import { Keys } from './keys.js'
import { hookLoaded } from './late.js'
import { watchSignals } from './patience.js'
import { reaches } from './reach.js'
import { activate } from './runtime.js'
import { hookUndici } from './undici.js'
import { withholdFromStrangers } from './withhold.js'

export { decode, ContextError } from './context.js'
export { edge } from './edge.js'
export { failureContext, scenarioOf } from './express.js'
export { before, forFastify, forKafkajs, forKoa } from './frameworks.js'
export { Keys, KeyFormatError } from './keys.js'
export { databasePoint, httpPoint, messagePoint, pointHash, rpcPoint } from './points.js'
export { current } from './request.js'

/** The service's name, as OpenTelemetry reads it from the environment. */
function named() {
  const { OTEL_SERVICE_NAME: name, OTEL_RESOURCE_ATTRIBUTES: attributes = '' } = process.env
  if (name) return name
  const pair = attributes.split(',').find((each) => each.trim().startsWith('service.name='))
  if (!pair) return undefined
  const value = pair.slice(pair.indexOf('=') + 1).trim()
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/**
 * Make the calls of this process's `fetch`, `http`, `https`, undici, grpc-js, pg, redis, ioredis and kafkajs
 * injection points. Returns whether injection is possible at all.
 *
 * Keys come from FIT_KEYS. Without a key, or with one that cannot be read, nothing is touched: a
 * service must start all the same.
 *
 * @param {string} [service] the name its spans carry; by default that of OTEL_SERVICE_NAME, else of
 *   service.name in OTEL_RESOURCE_ATTRIBUTES, else as OpenTelemetry's tracer provider calls it
 * @returns {boolean}
 */
export function install(service = named()) {
  const text = process.env.FIT_KEYS
  if (!text) return false
  try {
    activate(service, Keys.parse(text))
  } catch (error) {
    process.emitWarning(`fit stays off: ${error.message}`)
    return false
  }
  watchSignals()
  hookFetch()
  hookHttp()
  hookUndici()
  withholdFromStrangers()
  reaches('http', 'http', 'undici', 'fetch-node')
  for (const points of hookLoaded()) reaches(...points)
  return true
}
