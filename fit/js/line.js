/** Questions to the control plane, which keep no process alive. */

import http from 'node:http'
import https from 'node:https'

import { MalformedRules } from './rules.js'

export const MAX_DOCUMENT = 4 * 1024 * 1024

/** How a URL of this kind is asked. */
export function protocolOf(url) {
  return url.startsWith('https:') ? https : http
}

/**
 * The answer to a GET, where it says that all is well; its body is still to come. Redirects are not followed: the
 * token goes to the control plane and to nobody it might name.
 * @param {string} url
 * @param {{token: string, accept: string, devices: string, signal: AbortSignal}} how `devices`: how they are told apart
 * @returns {Promise<http.IncomingMessage>}
 */
export function opened(url, { token, accept, devices, signal }) {
  const headers = { authorization: `Bearer ${token}`, accept, 'ldfi-devices': devices }
  return new Promise((resolve, reject) => {
    const request = protocolOf(url).get(url, { headers, agent: false, signal }, (response) => {
      const { statusCode } = response
      if (statusCode >= 200 && statusCode < 300) return resolve(response)
      request.destroy()
      reject(new Error(`it answers with ${statusCode}`))
    })
    request.on('socket', (socket) => socket.unref()).on('error', reject)
  })
}

/** The whole of an answer, as text. */
export async function textOf(response) {
  const chunks = []
  let size = 0
  for await (const chunk of response) {
    size += chunk.length
    if (size > MAX_DOCUMENT) throw tooLong()
    chunks.push(chunk)
  }
  return decoded(new TextDecoder('utf-8', { fatal: true }), Buffer.concat(chunks))
}

/**
 * The data of each event of a stream (WHATWG, Server-sent events), and an empty text for a line that says nothing.
 * @param {AsyncIterable<Uint8Array>} stream
 * @returns {AsyncGenerator<string>}
 */
export async function* eventsOf(stream) {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  let data = ''
  for await (const chunk of stream) {
    const lines = (rest + decoded(decoder, chunk, { stream: true })).split('\n')
    rest = lines.pop()
    for (const line of lines.map((each) => each.replace(/\r$/, ''))) {
      if (line.startsWith('data:')) data += `${line.slice(5).replace(/^ /, '')}\n`
      else if (line.startsWith(':')) yield ''
      else if (!line && data) {
        yield data
        data = ''
      }
    }
    if (rest.length + data.length > MAX_DOCUMENT) throw tooLong()
  }
}

function tooLong() {
  return new MalformedRules(`rules not understood: over ${MAX_DOCUMENT} bytes`)
}

function decoded(decoder, bytes, options) {
  try {
    return decoder.decode(bytes, options)
  } catch (error) {
    throw new MalformedRules(`rules not understood: ${error.message}`)
  }
}
