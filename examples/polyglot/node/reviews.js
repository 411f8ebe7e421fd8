/**
 * Stars of a book, in Node. No line of it knows of fit: `node --import ldfi-fit/register`.
 *
 * Planted: the ratings are asked again where they fail, and they are the service that has just failed.
 */

import http from 'node:http'

const ATTEMPTS = 2

function asked(url) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { timeout: 2000 }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (some) => (text += some))
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text))
        else reject(new Error(`${url} answers ${response.statusCode}`))
      })
    })
    request.on('timeout', () => request.destroy(new Error(`${url} is silent`)))
    request.on('error', reject)
  })
}

async function stars(path) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await asked(process.env.RATINGS + path)
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
    }
  }
}

http.createServer(async (request, response) => {
  response.setHeader('content-type', 'application/json')
  try {
    response.end(JSON.stringify(request.url === '/health' ? 'ok' : await stars(request.url)))
  } catch (error) {
    response.statusCode = 502
    response.end(JSON.stringify({ error: error.message }))
  }
}).listen(Number(process.env.PORT), '127.0.0.1')
