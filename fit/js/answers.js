/** Answers over HTTP in place of the dependency, as fit/answers.py gives them. */

import { STATUS_CODES } from 'node:http'

const BODY = Buffer.from('fault injected')
const CUT = Buffer.from('{"why": "fault injected", "mo')
const MISSING = 35
const GARBAGE = Buffer.concat([Buffer.from([0xff, 0, 0xfe]), BODY, Buffer.from([0xc3, 0x28])])
const BODIES = { empty: Buffer.alloc(0), truncated: CUT, corrupt: GARBAGE }

/** @param {string} kind */
export function isAnswer(kind) {
  return kind === 'error' || kind.startsWith('status:') || lacksBody(kind)
}

/** Whether what is wrong is the body, so that an answer without one cannot have it. */
export function lacksBody(kind) {
  return Object.hasOwn(BODIES, kind)
}

/** The status of an answer of this kind. */
export function statusOf(kind) {
  if (lacksBody(kind)) return 200
  return kind === 'error' ? 503 : Number(kind.slice('status:'.length))
}

/**
 * An answer as HTTP/1.1 sends it, and whether the connection ends before the body does.
 * @param {string} kind
 * @param {string} method of HEAD the body stays away
 * @returns {{bytes: Buffer, cut: boolean}}
 */
export function wire(kind, method) {
  const status = statusOf(kind)
  const body = BODIES[kind] ?? BODY
  const cut = kind === 'truncated'
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `content-type: ${lacksBody(kind) ? 'application/json' : 'text/plain'}`,
    `content-length: ${body.length + (cut ? MISSING : 0)}`,
  ]
  const told = Buffer.from(`${head.join('\r\n')}\r\n\r\n`)
  return { bytes: method === 'HEAD' ? told : Buffer.concat([told, body]), cut }
}
