/** Answers over HTTP in place of the dependency, as fit/answers.py gives them. */

import { STATUS_CODES } from 'node:http'

import { recordOf } from './kinds.js'

const BODY = Buffer.from('fault injected')

/** @param {string} kind */
export function isAnswer(kind) {
  return kind === 'error' || kind.startsWith('status:') || lacksBody(kind)
}

/** Whether what is wrong is the body, so that an answer without one cannot have it. */
export function lacksBody(kind) {
  return recordOf(kind).answer !== undefined
}

/** The status of an answer of this kind. */
export function statusOf(kind) {
  return recordOf(kind).status ?? (kind === 'error' ? 503 : Number(kind.slice('status:'.length)))
}

/**
 * An answer as HTTP/1.1 sends it, and whether the connection ends before the body does.
 * @param {string} kind
 * @param {string} method of HEAD the body stays away
 * @returns {{bytes: Buffer, cut: boolean}}
 */
export function wire(kind, method) {
  const status = statusOf(kind)
  const { answer } = recordOf(kind)
  const body = answer ? Buffer.from(answer.body, 'latin1') : BODY
  const missing = answer?.missing ?? 0
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `content-type: ${lacksBody(kind) ? 'application/json' : 'text/plain'}`,
    `content-length: ${body.length + missing}`,
  ]
  const told = Buffer.from(`${head.join('\r\n')}\r\n\r\n`)
  return { bytes: method === 'HEAD' ? told : Buffer.concat([told, body]), cut: missing > 0 }
}
