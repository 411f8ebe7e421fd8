/** The middleware of express.js for servers that are put together in another way. */

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
