/** Servers of three kinds with the same middleware: node:http, Fastify and Koa. */

import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

import fastify from 'fastify'
import Koa from 'koa'

import { before, forFastify, forKoa } from '../../index.js'

const running = []

/** Where a server listens; it is closed with the others. */
async function listening(server) {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  running.push(server)
  return `http://127.0.0.1:${server.address().port}`
}

export function closeAll() {
  running.forEach((server) => server.close())
}

/**
 * Name → starts a server with this middleware, whose handler answers, a moment later, with what it is told.
 * @param {(request: import('node:http').IncomingMessage) => object} told
 * @returns {Record<string, (middleware: Function[]) => Promise<string>>}
 */
export function serversOf(told) {
  return {
    'node:http': (middleware) => listening(createServer(
      before(middleware, (request, response) => response.end(JSON.stringify(told(request)))))),
    Fastify: async (middleware) => {
      const app = fastify()
      for (const each of middleware) app.addHook('onRequest', forFastify(each))
      app.get('/*', async ({ raw }) => {
        await pause(1)
        return told(raw)
      })
      await app.listen({ port: 0, host: '127.0.0.1' })
      return listening(app.server)
    },
    Koa: (middleware) => {
      const app = new Koa()
      for (const each of middleware) app.use(forKoa(each))
      app.use(async (here) => {
        await pause(1)
        here.body = told(here.req)
      })
      return listening(createServer(app.callback()))
    },
  }
}

/** What the handler was told, by a connection of its own. */
export function ask(url, headers) {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, async (response) => {
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      resolve(JSON.parse(text))
    }).on('error', reject)
  })
}
