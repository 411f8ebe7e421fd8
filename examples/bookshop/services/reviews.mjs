/** Reviews, in Node with fit/js: they do without the author's name, and without pictures. */

import { createServer } from 'node:http'

import { failureContext, install } from '../../../ldfi/fit/js/index.js'
import { traced, traceFetch } from './tracing.mjs'

install() // fetch becomes an injection point
traceFetch()

async function optional(url) {
  try {
    const answer = await fetch(url)
    return answer.ok ? await answer.json() : null
  } catch {
    return null
  }
}

async function reviews(path) {
  if (path === '/health' || path.startsWith('/stars')) return path
  const author = await optional(`${process.env.CATALOGUE}/authors/17`)
  const pictures = await optional(`${process.env.RECOMMENDATIONS}/pictures/17`)
  return { author, pictures, text: 'A good read.' }
}

createServer((request, response) => {
  traced(request, response, () =>
    failureContext(request, response, async () => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(await reviews(request.url)))
    }),
  )
}).listen(Number(process.env.PORT), '127.0.0.1')
