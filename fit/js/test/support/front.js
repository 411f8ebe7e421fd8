/** `node front.js FRAMEWORK`: an edge in it, as somebody writes it, that asks NEXT in many ways. It says its port. */

import { once } from 'node:events'
import { createRequire } from 'node:module'
import { setTimeout as pause } from 'node:timers/promises'

const { before, edge, forFastify, forKoa, install } = await import('../../index.js')
install() // before the libraries are loaded, like what traces them

const require = createRequire(import.meta.url)
const http = require('node:http')
const grpc = require('@grpc/grpc-js')
let client
const next = `${process.env.NEXT}/titles/17`

function got(headers = {}) {
  return new Promise((resolve, reject) => {
    http.get(next, { headers }, async (response) => {
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      resolve(JSON.parse(text))
    }).on('error', reject)
  })
}

/** What a handler does: it asks, and answers with what the next service was told. */
const WAYS = {
  http: () => got(),
  fetch: async () => (await fetch(next)).json(),
  undici: async () => (await require('undici').request(next)).body.json(),
  grpc: () => new Promise((resolve) => { // its error tells of it, for there is no message
    client ??= new grpc.Client(process.env.NEXT_GRPC, grpc.credentials.createInsecure())
    const told = (error) => resolve(JSON.parse(error.metadata.get('x-told')[0]))
    client.makeUnaryRequest('/shop.Titles/Get', Buffer.from, String, Buffer.from('x'), told)
  }),
  end: (request) => new Promise((resolve, reject) => { // a body that is read by its events
    request.on('end', () => got().then(resolve, reject)).resume()
  }),
  timer: () => pause(2).then(() => got()),
  trailers: async (request) => { // a proxy that sends trailers on as headers
    if (!request.readableEnded) await once(request.resume(), 'end')
    const raw = request.rawTrailers
    return got({ ...request.trailers, [raw[0] ?? 'x-none']: raw[1] ?? '' })
  },
  forwarded: async ({ headers: { baggage } }) => (await fetch(next, { headers: baggage ? { baggage } : {} })).json(),
  copied: ({ headers, headersDistinct, rawHeaders }) => {
    const at = rawHeaders.findIndex((name, n) => n % 2 === 0 && name.toLowerCase() === 'baggage')
    return got({ baggage: [headers.baggage, headersDistinct.baggage, rawHeaders[at + 1]].flat().filter(Boolean) })
  },
}
let left // what was asked when its request was over
WAYS.later = (request, response) => {
  left = once(response, 'close').then(() => pause(5)).then(WAYS.http)
  return {}
}
WAYS.left = () => left
WAYS.early = ({ early }) => early

const asked = (request, response) => WAYS[request.headers['x-way']](request, response)

const FRAMEWORKS = {
  http: () => http.createServer(before([edge], async (request, response) => {
    response.end(JSON.stringify(await asked(request, response)))
  })),
  express: () => {
    const app = require('express')()
    app.use(async (request, response, go) => {
      if (request.headers['x-way'] === 'early') request.early = await got() // before the edge
      go()
    })
    app.use(edge)
    app.use((request, response, go) => setImmediate(go))
    app.all('/titles/:id', async (request, response) => response.json(await asked(request, response)))
    return http.createServer(app)
  },
  fastify: async () => {
    const app = require('fastify')()
    app.addHook('onRequest', forFastify(edge))
    app.all('/titles/:id', ({ raw }, reply) => asked(raw, reply.raw))
    await app.ready()
    return app.server
  },
  koa: () => {
    const app = new (require('koa'))()
    app.use(forKoa(edge))
    app.use(async (here) => {
      here.body = await asked(here.req, here.res)
    })
    return http.createServer(app.callback())
  },
  nest: async () => {
    require('reflect-metadata')
    const { All, Controller, Module, Req, Res } = require('@nestjs/common')
    const { NestFactory } = require('@nestjs/core')
    class Titles {
      async answer(request, response) {
        response.json(await asked(request, response))
      }
    }
    Req()(Titles.prototype, 'answer', 0)
    Res()(Titles.prototype, 'answer', 1)
    All(':id')(Titles.prototype, 'answer', Object.getOwnPropertyDescriptor(Titles.prototype, 'answer'))
    Controller('titles')(Titles)
    class Shop {}
    Module({ controllers: [Titles] })(Shop)
    const app = await NestFactory.create(Shop, { logger: false })
    app.use(edge)
    await app.init()
    return app.getHttpServer()
  },
}

const server = await FRAMEWORKS[process.argv[2]]()
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
