/**
 * Which hosts a failure context may be sent to: private ones, and those that FIT_HOSTS lists, as fit/hosts.py has it.
 *
 * To any other host a call goes without our entry; the rest of the baggage is none of our business. Only what cannot
 * be misread is allowed. All languages follow fit/protocol/vectors/hosts.json.
 */

import net from 'node:net'

import { without } from './baggage.js'

/** What is private, written as FIT_HOSTS is (fit/hosts.py says why); besides, every name of one label. */
const PRIVATE =
  '*.localhost,*.test,*.local,*.home.arpa,*.internal,*.svc,*.lan,' +
  '0.0.0.0,127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,100.64.0.0/10,' +
  '::,::1,fc00::/7,fe80::/10'
const REMEMBERED = 4096

const NAME = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/
const NUMBER = /^(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)$/
const IPV6 = /^(?:\[([0-9a-f:.]*:[0-9a-f:.]*)(?:%[a-z0-9._~-]+)?\]|([0-9a-f:.]*:[0-9a-f:.]*)(?:%[a-z0-9._~-]+)?)$/
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/
const PORT = /^([^:]*|\[.*\]):[0-9]{1,5}$/
const PATTERN = /^[a-z0-9_*-]+(?:\.[a-z0-9_*-]+)*$/
const NETWORK = /^([^/]*)\/([0-9]{1,3})$/
/** A signature of AWS's that covers the baggage: without that the call would be refused. */
const SIGNED = /^AWS4-\S+\s(?:.*[\s,])?SignedHeaders=(?:[^,\s]*;)?baggage(?:[;,\s]|$)/i

/** @type {Map<string, boolean>} */
const known = new Map()
let listed // what of FIT_HOSTS `known` goes by

/**
 * Whether a failure context may be sent to a host, given by name or address, without its port. A Unix socket is
 * `localhost`.
 * @param {string} host
 * @param {string | undefined} text what FIT_HOSTS says
 */
export function mayReach(host, text = process.env.FIT_HOSTS) {
  if (text !== listed || known.size >= REMEMBERED) known.clear()
  listed = text
  if (!known.has(host)) known.set(host, decided(read(host), text))
  return known.get(host)
}

/**
 * A `baggage` header as it may go to some hosts: the very same, or less our entry.
 * @param {string} header
 * @param {() => string[]} hosts asked only where there is such an entry
 * @param {() => string | undefined} authorization the header of this name
 */
export function passing(header, hosts, authorization = () => undefined) {
  const left = without(header)
  if (left === header || SIGNED.test(authorization()?.trim())) return header
  return hosts().every((host) => mayReach(host)) ? header : left
}

/** The hosts that see a call: the one that is asked, and the one that a proxy is asked for by the whole URL. */
export function hostsOf(host, path) {
  const [, authority] = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(path) ?? []
  return authority === undefined ? [host] : [host, PORT.exec(authority)?.[1] ?? authority]
}

/**
 * An address, given with or without a port and brackets; undefined for anything else.
 * @param {string} text
 */
export function addressOf(text) {
  const found = read(PORT.exec(text)?.[1] ?? text)
  return found !== undefined && net.isIP(found) ? found : undefined
}

/** Whether an address fits an entry of a list that is written as FIT_HOSTS is. */
export function allows(address, listed) {
  return entries(listed).find(([fits]) => fits(address))?.[1] ?? false
}

function decided(host, text) {
  const fitting = entries(text ?? '').find(([fits]) => fits(host))
  if (fitting) return fitting[1]
  const nobody = text !== undefined && !text.replaceAll(',', '').trim()
  return !nobody && (isLabel(host) || entries(PRIVATE).some(([fits]) => fits(host)))
}

const isLabel = (host) => host !== undefined && !/[.:]/.test(host)

/** A host's name, in lower case and without the last dot, or its address; undefined for any other spelling. */
function read(host) {
  const lower = lowered(host)
  const ipv6 = IPV6.exec(lower)
  if (ipv6) return ipv6Of(ipv6[1] ?? ipv6[2])
  const bare = lower.replace(/\.$/, '')
  return net.isIPv4(bare) || (NAME.test(bare) && !NUMBER.test(bare)) ? bare : undefined
}

function ipv6Of(text) {
  if (!net.isIPv6(text)) return undefined
  const { address } = new net.SocketAddress({ address: text, family: 'ipv6' })
  return MAPPED.exec(address)?.[1] ?? address
}

/** Of ASCII alone: no other letter becomes one of it. */
function lowered(text) {
  return text.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase())
}

/** @type {Map<string, [(host: string | undefined) => boolean, boolean][]>} */
const lists = new Map()

/** Whom each entry fits, and whether it allows or, with `!`, forbids. */
function entries(text) {
  if (!lists.has(text)) lists.set(text, text.split(',').map((each) => each.trim()).filter(Boolean).flatMap(entryOf))
  return lists.get(text)
}

function entryOf(entry) {
  const forbids = entry.startsWith('!')
  const fits = fitting(lowered(forbids ? entry.slice(1).trim() : entry))
  if (fits) return [[fits, !forbids]]
  process.emitWarning(`FIT_HOSTS: '${entry}' is no host, pattern or network; it is ignored`)
  return []
}

/** Whom `*`, a network, an address, a name or a pattern fits. */
function fitting(text) {
  if (text.includes('/')) return networkOf(text)
  const bare = PORT.exec(text)?.[1] ?? text
  if (bare === '*') return () => true
  const named = read(bare)
  if (named !== undefined) return (host) => host === named
  const pattern = bare.replace(/\.$/, '')
  return pattern.includes('*') && PATTERN.test(pattern) ? patternOf(pattern) : undefined
}

function networkOf(text) {
  const [, address = '', bits] = NETWORK.exec(text) ?? []
  const family = net.isIP(address)
  if (!family || Number(bits) > (family === 4 ? 32 : 128)) return undefined
  const network = new net.BlockList()
  network.addSubnet(address, Number(bits), `ipv${family}`)
  return (host) => host !== undefined && net.isIP(host) === family && network.check(host, `ipv${family}`)
}

/**
 * A pattern of digits fits addresses only, or `10.*` would fit `10.evil.com`; else a `*` that does not come first
 * stays within its label.
 */
function patternOf(text) {
  const isAddress = !/[^0-9.*]/.test(text)
  const any = (pattern, star) => pattern.replaceAll('.', '\\.').replaceAll('*', star)
  const pattern = isAddress ? any(text, '.*') : any(text.replace(/^\*/, ''), '[^.]*')
  const shape = new RegExp(`^${!isAddress && text.startsWith('*') ? '.*' : ''}${pattern}$`)
  return (host) => host !== undefined && isAddress === net.isIPv4(host) && !host.includes(':') && shape.test(host)
}
