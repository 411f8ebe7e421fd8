/**
 * Our entry in a raw `baggage` header (W3C Baggage, section 3).
 *
 * An entry is ours by its *decoded* name, as an SDK further in would see it.
 */

import { ENTRY } from './context.js'
import { unquoted } from './percent.js'

/** Characters. OpenTelemetry drops the whole of a longer header (W3C Baggage, section 3.3.2). */
export const MAX_HEADER = 8192

/** What Python takes for white space where a header can have it: there our entry would be seen. */
const AROUND = /^[\s\x1c-\x1f\x85]+|[\s\x1c-\x1f\x85]+$/g

/**
 * The value of our entry; undefined where there is none, or where there are several: which of them
 * counts is not defined, so none does.
 * @param {string} header
 * @returns {string|undefined}
 */
export function find(header) {
  const [ours, ...others] = values(header)
  return others.length ? undefined : ours
}

/**
 * The values of our entries, less their properties, in order.
 * @param {string} header
 * @returns {string[]}
 */
export function values(header) {
  return header.split(',').filter(isOurs).map((member) => {
    const [pair] = member.split(';', 1)
    return trimmed(pair.slice(pair.indexOf('=') + 1))
  })
}

/**
 * The header less every entry of ours.
 * @param {string} header
 */
export function without(header) {
  return header.split(',').filter((member) => !isOurs(member)).join(',')
}

/**
 * The header with our entry in front of the others, where no limit on entries cuts it off.
 * @param {string} header @param {string} value
 */
export function withEntry(header, value) {
  return [`${ENTRY}=${value}`, header].filter(Boolean).join(',')
}

function isOurs(member) {
  let [name] = member.split(/[=;]/, 1)
  if (/[%+]/.test(name)) name = unquoted(name.replaceAll('+', ' '))
  return trimmed(name).toLowerCase() === ENTRY
}

function trimmed(text) {
  return text.replace(AROUND, '')
}
