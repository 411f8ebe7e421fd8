/**
 * Our entry in a raw `baggage` header (W3C Baggage, section 3).
 *
 * An entry is ours by its *decoded* name, as an SDK further in would see it.
 */

import { ENTRY } from './context.js'

/**
 * The value of our entry; undefined where there is none, or where there are several: which of them
 * counts is not defined, so none does.
 * @param {string} header
 * @returns {string|undefined}
 */
export function find(header) {
  const ours = header.split(',').filter(isOurs)
  if (ours.length !== 1) return undefined
  const [member] = ours[0].split(';', 1)
  return member.slice(member.indexOf('=') + 1).trim()
}

/**
 * The header less every entry of ours.
 * @param {string} header
 */
export function without(header) {
  return header.split(',').filter((member) => !isOurs(member)).join(',')
}

/** @param {string} header */
export function holdsOurs(header) {
  return header.split(',').some(isOurs)
}

function isOurs(member) {
  let [name] = member.split(/[=;]/, 1)
  if (/[%+]/.test(name)) name = lenientlyDecoded(name)
  return name.trim().toLowerCase() === ENTRY
}

function lenientlyDecoded(name) {
  const hex = (_, digits) => String.fromCharCode(parseInt(digits, 16))
  return name.replaceAll('+', ' ').replace(/%([0-9a-f]{2})/gi, hex)
}
