/** Names of injection points: the same rules as fit/protocol/points.py, so that both ends agree. */

import { createHash } from 'node:crypto'

import { isIdentifier } from './identifiers.js'

const MAX_NAME_LENGTH = 240
const REMEMBERED = 8192
/** What stays of the characters beyond ASCII: the ranges of fit/protocol/points.py. */
const LETTERS =
  '\\u00a1-\\u167f\\u1681-\\u1fff\\u2070-\\u2fff\\u3001-\\ud7ff' +
  '\\uf900-\\ufefe\\uff00-\\uffef\\u{10000}-\\u{dffff}'
const UNSAFE = new RegExp(`[^A-Za-z0-9._~*{}$()!,;=@+${LETTERS}\\-]+`, 'gu')
const UNSAFE_TEMPLATE = new RegExp(`[^A-Za-z0-9._~*{}$()!,;=@+/:${LETTERS}\\-]+`, 'gu')
const PLACEHOLDER = /\{[^}/]*\}|<[^>/]*>|(?<=\/):[A-Za-z_][\p{L}\p{N}_]*/gu
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/
const COMMENTS = /^(?:\s*(?:\/\*[^]*?\*\/|--[^\n]*\n))+/
const VERB = /^\s*([a-zA-Z]+)/
const TABLE = new RegExp(
  `\\b(?:from|into|update|table|join)[ \\t-\\r]+[\`"[]?([A-Za-z0-9_.$${LETTERS}\\-]+)`, 'iu',
)
const DEFAULT_PORTS = new Set([80, 443])
const ESCAPE = /%[0-9A-Fa-f]{2}/
const NOT_ASCII = /[^\x00-\x7f]/
/** @type {Map<string, string>} */
const hashes = new Map()

/**
 * Eight characters that stand for a point's name: SHA-256, first 48 bits, base64url.
 * @param {string} name
 */
export function pointHash(name) {
  const known = hashes.get(name)
  if (known !== undefined) return known
  const hash = createHash('sha256').update(name).digest().subarray(0, 6).toString('base64url')
  if (hashes.size >= REMEMBERED) hashes.clear()
  hashes.set(name, hash)
  return hash
}

/**
 * Name an outgoing HTTP call, for instance `api>http:GET:ratings/titles/*`.
 *
 * @param {string} caller this service's name
 * @param {string} method
 * @param {string} host
 * @param {number|null} port null where the URL names none
 * @param {string} path as it goes over the wire
 * @param {string} [template] `url.template` where the caller knows it
 */
export function httpPoint(caller, method, host, port, path, template = '') {
  const route = template ? templateRoute(template) : templatePath(path)
  const named = DEFAULT_PORTS.has(port) ? null : port
  return point(caller, 'http', method.toUpperCase(), address(host, named), route)
}

/**
 * Name a remote procedure call, for instance `api>rpc:Get:prices/shop.Prices`.
 *
 * @param {string} caller this service's name
 * @param {string} method the full one: `/package.Service/Method`
 * @param {string} [peer] the target as its caller has it, HOST or HOST:PORT
 */
export function rpcPoint(caller, method, peer = '') {
  const bare = method.replace(/^\/+|\/+$/g, '')
  const at = bare.lastIndexOf('/')
  const [, host, port] = /^(.*):(\d+)$/.exec(peer) ?? [undefined, peer, null]
  const service = bare.slice(0, Math.max(at, 0))
  return point(caller, 'rpc', bare.slice(at + 1), address(host, port), asPath(service))
}

/**
 * Name a statement or a command, for instance `bookmarks>db:SELECT:recordsdb/marks`.
 *
 * @param {string} caller this service's name
 * @param {string} statement
 * @param {string} peer the database, of Redis the server's host
 */
export function databasePoint(caller, statement, peer) {
  const table = TABLE.exec(statement.replace(COMMENTS, ''))?.[1] ?? ''
  return point(caller, 'db', verbOf(statement), peer, asPath(table))
}

/** What a statement begins with. */
export function verbOf(statement) {
  return VERB.exec(statement.replace(COMMENTS, ''))?.[1].toUpperCase() ?? ''
}

/**
 * Name the opening of a connection to a database, for instance `bookmarks>db:connect:recordsdb`.
 *
 * @param {string} caller this service's name
 * @param {string} peer
 */
export function connectPoint(caller, peer) {
  return point(caller, 'db', 'connect', peer, '')
}

/**
 * Name a command to Redis, for instance `api>db:GET:sessions`.
 *
 * @param {string} caller this service's name
 * @param {string} command
 * @param {string} host @param {number|null} port
 */
export function commandPoint(caller, command, host, port) {
  return databasePoint(caller, command, address(host, port))
}

/**
 * Name a message that is sent, for instance `api>message:send:kafka/plays`.
 *
 * @param {string} caller this service's name
 * @param {string} operation
 * @param {string} system
 * @param {string} destination a topic, a queue
 */
export function messagePoint(caller, operation, system, destination) {
  return point(caller, 'message', operation, system, asPath(templateWords(destination)))
}

/** The order of Python's texts: by code points, where ours go by halves of them. */
export function byCodePoints(a, b) {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** A name made of words and paths, with the identifiers in it replaced by `*`. */
export function templateWords(text) {
  return text.split(/\s+/).filter(Boolean).map(templateWord).join(' ')
}

function templateWord(word) {
  if (word.includes('/')) return templatePath(word)
  return word.split('.').map((part) => asPath(part).slice(1)).join('.')
}

/** What stands where a point's name has its path. */
function asPath(text) {
  return text ? templated(`/${text.replace(/^\/+/, '')}`, templateSegment) : ''
}

function point(caller, kind, operation, peer, template) {
  const cleaned = peer.split(':').map(clean).join(':')
  let route = template.replace(UNSAFE_TEMPLATE, '_')
  if (route && !route.startsWith('/')) route = `/${route}`
  const target = cleaned || route ? `:${cleaned}${route}` : ''
  const name = `${clean(caller) || 'unknown'}>${kind}:${clean(operation)}${target}`
  return name.length > MAX_NAME_LENGTH ? [...name].slice(0, MAX_NAME_LENGTH).join('') : name
}

function clean(text) {
  return text.replace(UNSAFE, '_')
}

/** The port counts only where the host is an address. */
function address(host, port) {
  const lower = host.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase())
  const bare = lower.replace(/\.+$/, '').replace(/^[[\]]+|[[\]]+$/g, '')
  const numeric = bare === 'localhost' || bare.includes(':') || IPV4.test(bare)
  return numeric && port ? `${bare}:${port}` : bare
}

/**
 * Replace the identifiers in a URL path with `*`; drop query and fragment.
 * @param {string} path
 */
export function templatePath(path) {
  return templated(path, (segment) => (NOT_ASCII.test(segment) ? '*' : templateSegment(segment)))
}

function templated(path, template) {
  const [bare] = path.split(/[?#]/, 1)
  return bare.split('/').map(template).join('/') || '/'
}

function templateSegment(segment) {
  if (!segment) return segment
  return ESCAPE.test(segment) || isIdentifier(segment) ? '*' : segment
}

/** Bring a framework's route (`/users/{id}`, `/users/<int:id>`, `/users/:id`) to our form. */
function templateRoute(route) {
  const [bare] = route.split('?', 1)
  return bare.replace(PLACEHOLDER, '*')
}
