/**
 * A page in Node that needs one call: `WAY` says how it is lost to sight, or that it is not.
 *
 * It is imported after `ldfi-fit/register`; what is beside it (`NODE_MODULES`) is that of fit/js.
 */

import { AsyncResource } from 'node:async_hooks'
import { exec, fork, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import net from 'node:net'
import { fileURLToPath } from 'node:url'
import { MessageChannel, Worker } from 'node:worker_threads'

const require = createRequire(`${process.env.NODE_MODULES}/page.js`)
const { context, propagation, ROOT_CONTEXT, trace } = require('@opentelemetry/api')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { suppressTracing } = require('@opentelemetry/core')
const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { detectResources, envDetector } = require('@opentelemetry/resources')
const { BatchSpanProcessor, NodeTracerProvider } = require('@opentelemetry/sdk-trace-node')

const { STORE, WAY } = process.env
const NEEDED = `${STORE}/price/17`
const SELF = fileURLToPath(import.meta.url)
const ASKS = `require('node:http').get(process.env.NEEDED, r => process.exit(r.statusCode === 200 ? 0 : 1))
  .on('error', () => process.exit(1))`

const provider = new NodeTracerProvider({
  resource: detectResources({ detectors: [envDetector] }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
})
provider.register()
registerInstrumentations({
  instrumentations: [
    new HttpInstrumentation({
      ignoreIncomingRequestHook: (request) => request.url === '/health',
      ignoreOutgoingRequestHook: ({ path }) => WAY === 'ignored' && path.startsWith('/price'),
    }),
  ],
})
const http = require('node:http')

const asked = (url, headers = {}) =>
  new Promise((resolve) => {
    http
      .get(url, { headers, timeout: 3000 }, (answer) => answer.resume().on('end', () => resolve(answer.statusCode === 200)))
      .on('timeout', function () { this.destroy() })
      .on('error', () => resolve(false))
  })
const needed = () => asked(NEEDED)
const ended = (child) => new Promise((resolve) => child.on('exit', (code) => resolve(code === 0)))

const queue = []
setInterval(() => { while (queue.length) needed().then(queue.shift()) }, 5) // it began before any request
const bound = AsyncResource.bind(needed)
const { port1, port2 } = new MessageChannel()
const waiting = []
port2.on('message', () => needed().then((fine) => waiting.shift()(fine)))

function bySocket() {
  const { hostname, port, pathname } = new URL(NEEDED)
  return new Promise((resolve) => {
    const socket = net.connect(Number(port), hostname, () => socket.write(`GET ${pathname} HTTP/1.0\r\n\r\n`))
    socket.on('data', (some) => resolve(String(some).includes(' 200 '))).on('error', () => resolve(false))
  })
}

function byHand() { // the context goes on, and no span tells of the call
  const headers = {}
  propagation.inject(context.active(), headers)
  return context.with(suppressTracing(context.active()), () => asked(NEEDED, headers))
}

const untold = new NodeTracerProvider() // whose spans nobody exports
const unexported = () => {
  const span = untold.getTracer('page').startSpan('work', {}, context.active())
  return context.with(trace.setSpan(context.active(), span), needed).finally(() => span.end())
}

const environment = { ...process.env, NEEDED, NODE_OPTIONS: '' }
const WAYS = {
  seen: needed,
  later: () => new Promise((resolve) => setTimeout(() => resolve(needed()), 5)),
  all: async () => (await Promise.all([needed(), needed()])).every(Boolean),
  tick: () => new Promise((resolve) => process.nextTick(() => resolve(needed()))),
  root: () => context.with(ROOT_CONTEXT, needed),
  nameless: () => context.with(trace.deleteSpan(context.active()), needed),
  suppressed: () => context.with(suppressTracing(context.active()), needed),
  ignored: needed,
  hand: byHand,
  queue: () => new Promise((resolve) => queue.push(resolve)),
  bound,
  port: () => new Promise((resolve) => { waiting.push(resolve); port1.postMessage('') }),
  worker: () => ended(new Worker(ASKS, { eval: true, env: environment, execArgv: [] })),
  child: () => ended(spawn(process.execPath, ['-e', ASKS], { env: environment })),
  fork: () => ended(fork(SELF, ['ask'], { env: environment, execArgv: [] })),
  exec: () => new Promise((resolve) => exec(`"${process.execPath}" -e "${ASKS.replaceAll('\n', ' ')}"`, { env: environment }, (error) => resolve(!error))),
  sidecar: () => new Promise((resolve) => sidecar.once('message', resolve).send('')),
  unexported,
  socket: bySocket,
  fetch: () => fetch(NEEDED).then(({ ok }) => ok, () => false), // OpenTelemetry's instrumentation is not there
}

if (process.argv[2] === 'ask') {
  process.exit((await asked(NEEDED)) ? 0 : 1)
}
let sidecar
function serve() {
  if (WAY === 'sidecar') sidecar = fork(SELF, ['answer'], { env: environment, execArgv: [] })
  if (process.env.POLLS) setInterval(() => asked(`${STORE}/news`), 130)
  http.createServer(page).listen(Number(process.env.PORT), '127.0.0.1')
}

async function page(request, response) {
  if (request.url !== '/health') {
    await asked(`${STORE}/bestsellers`) // in sight, and not needed
    if (!(await WAYS[WAY]())) response.statusCode = 500
  }
  response.setHeader('content-type', 'application/json')
  response.end('{}')
}

if (process.argv[2] === 'answer') {
  process.on('message', async () => process.send(await asked(NEEDED)))
} else {
  serve()
}
