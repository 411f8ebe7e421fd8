/** The implementation for Node as a host of the conformance test: `fit` in fetch, or in node:http; and edges. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import { createServer, get } from 'node:http'

const {
  ContextError, Keys, before, databasePoint, decode, failureContext, httpPoint, install, messagePoint, pointHash,
  rpcPoint,
} = await import(process.env.FIT_JS)
const { Edge, standing } = await import(new URL('edge.js', process.env.FIT_JS))
const { RulesPoll } = await import(new URL('poll.js', process.env.FIT_JS))

const SERVICE = 'conformance'
const runs = new AsyncLocalStorage()

subscribe('fit.fault', ({ point, kind, outcome }) => {
  const marks = { 'fit.point': point }
  if (outcome === 'fired') Object.assign(marks, { 'fit.fired': kind, event: 'fit.fault' })
  if (outcome === 'would_fire') marks['fit.would_fire'] = kind
  if (outcome === 'let_through') marks['fit.let_through'] = 'true'
  if (outcome === 'expired') marks['fit.expired'] = 'true'
  runs.getStore()?.push(marks)
})

function decoded({ keys, value, now }) {
  try {
    const { experiment, arm, expires, injections } = decode(Keys.parse(keys), value, now)
    const faults = [...injections].map(([hash, { kind, delayMs, first }]) => (
      { hash, kind, delay_ms: delayMs, first }
    ))
    return { result: 'accepted', context: { experiment, arm, expires, faults } }
  } catch (error) {
    if (!(error instanceof ContextError)) throw error
    return { result: error.reason }
  }
}

const NAMED = {
  http: ({ caller, method, host, port, path, template }) => (
    httpPoint(caller, method, host, port || null, path, template)
  ),
  rpc: ({ caller, method, peer }) => rpcPoint(caller, method, peer),
  db: ({ caller, statement, peer }) => databasePoint(caller, statement, peer),
  message: ({ caller, operation, system, destination }) => (
    messagePoint(caller, operation, system, destination)
  ),
}

function named(vector) {
  const name = NAMED[vector.kind](vector)
  return { name, hash: pointHash(name) }
}

const about = {
  protocol: 1,
  implementation: 'Node',
  service: SERVICE,
  reads: 'header',
  kinds: [
    'error', 'delay', 'status', 'refused', 'reset', 'timeout', 'empty', 'truncated', 'corrupt', 'slow',
  ],
  names: Object.keys(NAMED),
  edge: !process.argv.includes('--http'), // one is enough
}

async function fetched(url, timeout) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(timeout) })
  return { status: answer.status, length: (await answer.arrayBuffer()).byteLength }
}

function got(url, timeout) {
  return new Promise((resolve, reject) => {
    const request = get(url, { timeout }, (response) => {
      let length = 0
      response.on('data', (chunk) => (length += chunk.length))
      response.on('end', () => resolve({ status: response.statusCode, length }))
      response.on('error', () => reject(new Error('terminated')))
    })
    request.on('timeout', () => request.destroy(new DOMException('late', 'TimeoutError')))
    request.on('error', reject)
  })
}

const called = process.argv.includes('--http') ? got : fetched

/** How a call failed, in the words of the protocol. */
function failure(error) {
  const { code } = error.cause ?? error
  if (error.name === 'TimeoutError') return 'timeout'
  if (error.message === 'terminated') return 'truncated'
  return { ECONNREFUSED: 'refused', ECONNRESET: 'reset' }[code] ?? String(error)
}

function run({ headers, url, calls, timeout_ms: timeout }) {
  const spans = []
  return new Promise((resolve) => {
    runs.run(spans, () => failureContext({ headers }, {}, async () => {
      const seen = []
      for (let i = 0; i < calls; i++) {
        seen.push(await called(url, timeout).catch((error) => ({ failed: failure(error) })))
      }
      resolve({ seen, spans })
    }))
  })
}

/** An edge as in a process with these variables, which says what each request goes on with. */
function front({ environment }) {
  const made = new Edge(RulesPoll.fromEnvironment(environment), environment)
  const told = before([standing(() => made)], ({ headers }, response) => {
    response.end(Buffer.from(headers.baggage ?? '', 'latin1'))
  })
  return new Promise((resolve) => {
    const server = createServer(told).listen(0, '127.0.0.1', () => {
      resolve({ url: `http://127.0.0.1:${server.address().port}` })
    })
  })
}

async function answer(request) {
  if (request.method === 'GET') return about
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  const asked = JSON.parse(text)
  if (request.url === '/run') return run(asked)
  if (request.url === '/edge') return front(asked)
  return asked.cases.map(request.url === '/decode' ? decoded : named)
}

install(SERVICE)
const server = createServer(async (request, response) => {
  response.end(JSON.stringify(await answer(request)))
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
