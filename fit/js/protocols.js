/**
 * What a request asks for where its path does not say, of Falcor and GraphQL: what fit/protocol/request_protocols.py reads
 * in a query and in a header. Bodies are not read here.
 */

import { byCodePoints, templatePath } from './points.js'

const MOST_PATHS = 50
const MOST_PREFIXES = 32
const DEEPEST = 5
const LONGEST = 40
const HASH = 12
const MOST_FIELDS = 16
const LONGEST_DOCUMENT = 8192

const NAME = /^[_A-Za-z][_0-9A-Za-z]*$/
const TOKEN = new RegExp(
  [
    '#[^\\n]*', '"""(?:[^"\\\\]|\\\\[^\\n]|"(?!""))*"""', '"(?:[^"\\\\\\n]|\\\\[^\\n])*"',
    '\\.\\.\\.', '[_A-Za-z][_0-9A-Za-z]*', '[{}()\\[\\]:@$!=|&]',
  ].join('|'), 'g',
)
const DOCUMENT = /^\s*(?:\{|(?:query|mutation|subscription)(?![\p{L}\p{N}_])|#|fragment(?![\p{L}\p{N}_]))/u
const TYPES = new Set(['query', 'mutation', 'subscription'])
const TELLING = new Set(['path', 'paths', 'query', 'operationName', 'extensions'])

/** Keep a word that looks like no identifier; `*` for any other. */
function wordOf(text) {
  if ([...text].length > LONGEST || templatePath(`/${text.replaceAll('/', '%2F')}`) === '/*') return '*'
  return text
}

/**
 * What a query string asks for, as features; none where it speaks neither of them.
 * @param {[string, string][]} pairs
 * @returns {Map<string, string>}
 */
export function askedByQuery(pairs) {
  const named = new Map()
  for (const [name, value] of pairs.filter(([each]) => TELLING.has(each))) {
    named.set(name, [...(named.get(name) ?? []), value])
  }
  const paths = [...(named.get('path') ?? []), ...(named.get('paths') ?? [])]
  if (paths.some((value) => value.trimStart().startsWith('['))) return falcor(paths)
  const [given] = named.get('query') ?? ['']
  const query = DOCUMENT.test(given) ? given : ''
  const [extensions] = named.get('extensions') ?? ['']
  if (!query && !named.has('operationName') && !extensions.includes('persistedQuery')) return new Map()
  return graphql(query, named.get('operationName')?.[0], read(extensions))
}

/** An operation of which nothing but its name is known. */
export function graphqlNamed(operation) {
  return new Map([['protocol', 'graphql'], ['graphql.operation', wordOf(operation)]])
}

function graphql(text, operationName, extensions) {
  const features = new Map([['protocol', 'graphql']])
  const { kind, name, fields } = documentOf(text)
  const operation = operationName || name
  const persisted = persistedBy(extensions)
  if (operation) {
    features.set('graphql.operation', wordOf(operation))
  } else if (persisted) {
    features.set('graphql.hash', persisted)
  } else if (kind) {
    features.set('graphql.type', kind)
    for (const field of fields) features.set(`graphql.field.${field}`, '')
  }
  return features
}

function persistedBy(extensions) {
  const sha = extensions?.persistedQuery?.sha256Hash
  if (typeof sha !== 'string' || !/^[\p{L}\p{N}]+$/u.test(sha)) return ''
  return [...sha].slice(0, HASH).join('')
}

/** Type, name and top-level fields of a document's first operation. */
function documentOf(text) {
  const signs = (text.slice(0, LONGEST_DOCUMENT).match(TOKEN) ?? []).filter((sign) => !/^[#"]/.test(sign))
  let at = 0
  while (at < signs.length && !TYPES.has(signs[at]) && signs[at] !== '{') at = behindBlock(signs, at)
  if (at >= signs.length) return { kind: '', name: '', fields: [] }
  const [kind, after] = signs[at] === '{' ? ['query', ''] : [signs[at], signs[at + 1] ?? '']
  const fields = [...new Set(topLevel(signs, at))].sort().slice(0, MOST_FIELDS)
  return { kind, name: NAME.test(after) ? after : '', fields }
}

/** Where a fragment ends that stands before the operation. */
function behindBlock(signs, at) {
  let depth = 0
  while (at < signs.length) {
    depth += (signs[at] === '{') - (signs[at] === '}')
    at += 1
    if (!depth && signs[at - 1] === '}') break
  }
  return at
}

/** The fields right inside an operation: by their names, not by their aliases. */
function topLevel(signs, start) {
  const fields = []
  let braces = 0
  let others = 0
  for (let at = start; at < signs.length; at++) {
    const sign = signs[at]
    braces += (sign === '{') - (sign === '}')
    others += (sign === '(' || sign === '[') - (sign === ')' || sign === ']')
    const before = at ? signs[at - 1] : ''
    const plain = NAME.test(sign) && signs[at + 1] !== ':' && !['@', '...', '$', 'on'].includes(before)
    if (braces === 1 && !others && plain && at > start) fields.push(sign)
    if (!braces && sign === '}') break
  }
  return fields
}

/** Each prefix of each path is a feature: `falcor.videos`, `falcor.videos.*.title`. */
function falcor(values) {
  const found = new Map()
  let left = MOST_PATHS
  for (const value of values) {
    const whole = read(value)
    const paths = Array.isArray(whole) && whole.every(Array.isArray) ? whole : [whole]
    for (const path of paths.slice(0, left).filter(Array.isArray)) {
      for (const prefix of prefixesOf(path)) found.set(prefix, '')
    }
    left -= Math.min(left, paths.length)
    if (whole === null && value.trimStart().startsWith('[')) found.set('unread', 'query') // cut off, perhaps
  }
  if (!found.size) return new Map()
  const kept = [...found].sort(([a], [b]) => byCodePoints(a, b)).slice(0, MOST_PREFIXES)
  return new Map([['protocol', 'falcor'], ...kept])
}

/** The prefixes of a path that end in a word; a set of keys makes one for each. */
function prefixesOf(path) {
  const found = []
  let prefixes = ['falcor']
  for (const keys of path.slice(0, DEEPEST)) {
    const several = Array.isArray(keys)
    const named = several ? [...new Set(keys.map(keyOf))].sort(byCodePoints) : [keyOf(keys)]
    prefixes = prefixes.flatMap((prefix) => named.map((key) => `${prefix}.${key}`))
    if (several) prefixes = prefixes.slice(0, MOST_PREFIXES)
    found.push(...prefixes.filter((each) => !(several ? each.endsWith('*') : named[0] === '*')))
  }
  return found
}

/** Keep a key that is a word; ids, ranges and numbers are `*`. */
function keyOf(key) {
  return typeof key === 'string' && key ? wordOf(key).replaceAll('.', '_') : '*'
}

function read(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
