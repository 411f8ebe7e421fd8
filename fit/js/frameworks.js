/** The middleware of express.js for servers that are put together in another way, and for consumers. */

import { readRequest } from './express.js'

/**
 * A hook for Fastify: `app.addHook('onRequest', forFastify(edge))`.
 * @param {Function} middleware
 */
export function forFastify(middleware) {
  return (request, reply, done) => middleware(request.raw, reply.raw, () => done())
}

/**
 * Middleware for Koa: `app.use(forKoa(edge))`.
 * @param {Function} middleware
 */
export function forKoa(middleware) {
  return ({ req, res }, next) => new Promise((resolve, reject) => {
    middleware(req, res, () => next().then(resolve, reject))
  })
}

/**
 * A handler of node:http with middleware before it: `createServer(before([edge], handler))`.
 * @param {Function[]} middleware the first is the outermost
 * @param {Function} handler
 */
export function before(middleware, handler) {
  return (request, response) => {
    const enter = (at) => {
      if (at === middleware.length) handler(request, response)
      else middleware[at](request, response, () => enter(at + 1))
    }
    enter(0)
  }
}

/**
 * A handler of kafkajs for one message: `consumer.run({ eachMessage: forKafkajs(handler) })`. What it does is done
 * in the name of the request that sent the message, by the context in the message's headers.
 * @param {Function} handler
 */
export function forKafkajs(handler) {
  return (payload) => {
    let answer
    let over = false
    const end = () => {
      over = true
    }
    try {
      readRequest(headersOf(payload), [], () => over, () => {
        answer = handler(payload)
      })
    } finally {
      Promise.resolve(answer).then(end, end)
    }
    return answer
  }
}

/** The headers of a message that tell of its request; of none where they cannot be read. */
function headersOf(payload) {
  const headers = {}
  for (const name of ['baggage', 'traceparent']) {
    const given = payload?.message?.headers?.[name]
    if (given) headers[name] = [given].flat().map(String).join(',')
  }
  return headers
}
