/** How people call over HTTP from Node, and what each caller sees, in plain data. */

import http from 'node:http'

import axios from 'axios'
import got from 'got'
import nodeFetch from 'node-fetch'
import * as undici from 'undici'

const pool = {}

async function readNode(url, { patience }) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { timeout: patience }, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => resolve([response.statusCode, Buffer.concat(chunks)]))
      response.on('error', reject)
    })
    request.on('timeout', () => request.destroy(new Error('late')))
    request.on('error', reject)
  })
}

async function readFetch(fetch, url, { patience }) {
  const answer = await fetch(url, patience && { signal: AbortSignal.timeout(patience) })
  return [answer.status, Buffer.from(await answer.arrayBuffer())]
}

async function readUndici(dispatcher, url, { patience }) {
  const given = { dispatcher, headersTimeout: patience }
  const { statusCode, body } = await undici.request(url, given)
  return [statusCode, Buffer.from(await body.arrayBuffer())]
}

async function readPool(url, { patience }) {
  const { origin, pathname: path } = new URL(url)
  pool[origin] ??= new undici.Pool(origin, { connections: 2 })
  const { statusCode, body } = await pool[origin].request({ path, method: 'GET', headersTimeout: patience })
  return [statusCode, Buffer.from(await body.arrayBuffer())]
}

async function readGot(url, { patience }) {
  const timeout = patience && { request: patience }
  const plain = { retry: { limit: 0 }, throwHttpErrors: false, responseType: 'buffer' }
  const { statusCode, body } = await got(url, { ...plain, timeout })
  return [statusCode, Buffer.from(body)]
}

async function readAxios(url, { patience }) {
  const plain = { validateStatus: null, responseType: 'arraybuffer', proxy: false }
  const { status, data } = await axios.get(url, { ...plain, timeout: patience })
  return [status, data]
}

/** Name → (url, {patience in ms}) → [status, body]. */
export const CALLERS = {
  'node:http': readNode,
  axios: readAxios,
  got: readGot,
  'node-fetch': (url, how) => readFetch(nodeFetch, url, how),
  fetch: (url, how) => readFetch(globalThis.fetch, url, how),
  'undici.request': (url, how) => readUndici(undefined, url, how),
  'undici.Pool': readPool,
  'undici.fetch': (url, how) => readFetch(undici.fetch, url, how),
}

/** What a call comes to; ports and moments, which differ every time, are left out. */
export async function seen(caller, url, how = {}) {
  try {
    const [status, body] = await CALLERS[caller](url, how)
    return { status, body: body.toString('latin1') }
  } catch (error) {
    return described(error)
  }
}

function described(error) {
  if (!(error instanceof Error)) return error
  const { name, message, code, errno, syscall, address, type, cause, errors } = error
  const plain = message.replace(/127\.0\.0\.1:\d+|localhost:\d+|::1:\d+/g, 'ADDRESS')
  return {
    kind: error.constructor.name, name, message: plain, code, errno, syscall, address, type,
    port: typeof error.port,
    cause: described(cause),
    errors: errors?.map(described),
  }
}

export function closeAll() {
  return Promise.all([...Object.values(pool), undici.getGlobalDispatcher()].map((each) => each.close()))
}
