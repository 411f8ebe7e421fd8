/** Who a device is, by what FIT_DEVICE says, as fit/device.py has it; held against fit/protocol/vectors/devices.json. */

import { addressOf, allows } from './hosts.js'
import { unquoted } from './percent.js'

const DEFAULT = 'header:x-device-id'
const LOOPBACK = '127.0.0.1'
/** Characters of an id; what is longer is none. */
const LONGEST = 1024
/** Addresses of proxies that are gone through. */
const MOST = 20
const SOURCE = /^(?:(header|cookie|baggage):([A-Za-z0-9!#$%&'*+.^_`|~-]{1,64})|address)$/

/** @typedef {(name: string) => string[]} Values the values of all headers of a name in small letters, in their order */

export class Devices {
  #sources
  #trusted

  constructor(environ = process.env) {
    this.#sources = (environ.FIT_DEVICE ?? DEFAULT).split(',').map(trimmed).filter(Boolean).flatMap(sourceOf)
    this.#trusted = environ.FORWARDED_ALLOW_IPS ?? LOOPBACK
  }

  /** Then also a connection without an address is trusted, such as a Unix socket. */
  get #isEverybody() {
    return this.#trusted.split(',').some((each) => trimmed(each) === '*')
  }

  /** By what devices are told apart, without names. */
  get kinds() {
    return [...new Set(this.#sources.map(([kind]) => kind))].join(',')
  }

  /**
   * Which device a request comes from; empty where nobody knows.
   * @param {Values} values
   * @param {string} peer the address of the connection, with or without a port
   */
  of(values, peer) {
    for (const [kind, name] of this.#sources) {
      const found = this.#found(kind, name, values, peer)
      if (found && (found.length <= LONGEST || [...found].length <= LONGEST)) return found
    }
    return ''
  }

  #found(kind, name, values, peer) {
    if (kind === 'header') return values(name).map(trimmed).filter(Boolean).join(',')
    if (kind === 'cookie') return cookie(name, values('cookie'))
    if (kind === 'baggage') return entry(name, values('baggage'))
    return written(this.#origin(peer, values('x-forwarded-for')))
  }

  /** Whose request it is: past the proxies that are trusted, from the nearest one on. */
  #origin(peer, forwarded) {
    const said = forwarded.flatMap((value) => value.split(',')).map(trimmed).filter(Boolean)
    let at = addressOf(peer)
    let believed = at === undefined ? this.#isEverybody : allows(at, this.#trusted)
    for (const each of said.slice(-MOST).reverse()) {
      if (!believed) break
      at = addressOf(each)
      believed = at !== undefined && allows(at, this.#trusted)
    }
    return at
  }
}

function sourceOf(text) {
  const [whole, kind, name] = SOURCE.exec(text) ?? []
  if (whole === undefined) {
    process.emitWarning(`FIT_DEVICE names '${text.slice(0, 80)}': write header:NAME, cookie:NAME, baggage:KEY or address`)
    return []
  }
  return [[kind ?? 'address', kind === 'header' ? name.toLowerCase() : name]]
}

function trimmed(text) {
  return text.replace(/^[ \t]+/, '').replace(/[ \t]+$/, '')
}

/** The first cookie of a name that has a value, without the quotes around it. */
function cookie(name, headers) {
  for (const pair of headers.flatMap((header) => header.split(';'))) {
    const [key] = pair.split('=', 1)
    const said = trimmed(pair.slice(key.length + 1))
    const value = said.length > 1 && said.startsWith('"') && said.endsWith('"') ? said.slice(1, -1) : said
    if (trimmed(key) === name && value) return value
  }
  return ''
}

/** The first entry of the baggage of a key that has a value, decoded. */
function entry(name, headers) {
  for (const member of headers.flatMap((header) => header.split(','))) {
    const [pair] = member.split(';', 1)
    const [key] = pair.split('=', 1)
    const value = trimmed(pair.slice(key.length + 1))
    if (trimmed(key) === name && value) return unquoted(value)
  }
  return ''
}

/** An address as an id; of IPv6 the first half, since the other half changes from day to day. */
function written(address) {
  if (!address?.includes(':')) return address ?? ''
  const [head, tail] = address.split('::')
  const before = head ? head.split(':') : []
  const after = tail ? tail.split(':').flatMap((each) => (each.includes('.') ? [each, each] : [each])) : []
  const groups = [...before, ...Array(Math.max(0, 8 - before.length - after.length)).fill('0'), ...after]
  return `${groups.slice(0, 4).map((each) => parseInt(each, 16).toString(16)).join(':')}::/64`
}
