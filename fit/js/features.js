/**
 * What is known of a request when it arrives: the features of fit/protocol/features.py, by which request classes are
 * told apart. Bodies are not read: a request whose body may tell more has `unread`.
 */

import { deviceType } from './device.js'
import { unquoted } from './percent.js'
import { byCodePoints, templatePath } from './points.js'
import { askedByQuery, graphqlNamed } from './protocols.js'

const OPERATION_HEADER = 'x-apollo-operation-name'
const MAX_VALUE_LENGTH = 24
const MAX_QUERY_PARAMETERS = 20
const MAX_LENGTH = 2048
const MAX_QUERY_LENGTH = 8192
/** Parameters whose values say nothing beyond what was read in them. */
const SAID = {
  falcor: new Set(['path', 'paths']),
  graphql: new Set(['query', 'operationName', 'variables', 'extensions']),
}

/**
 * @param {{method: string, path: string, query?: string, headers?: Iterable<[string, string]>}} request
 *   the names of headers in small letters
 * @param {Set<string>} wanted features by headers, cookies and baggage
 * @returns {Map<string, string>}
 */
export function featuresOf({ method, path, query = '', headers = [] }, wanted) {
  const verb = method.toUpperCase()
  return new Map([
    ['method', verb],
    ['path', templatePath(path.slice(0, MAX_LENGTH))],
    ...(query ? queryFeatures(query.slice(0, MAX_QUERY_LENGTH)) : []),
    ...headerFeatures(headers, wanted, verb),
  ])
}

/** Of some headers, cookies and entries of the baggage those features that are wanted. */
export function chosenFeatures(headers, wanted) {
  return headerFeatures(headers, wanted, '').filter(([name]) => wanted.has(name))
}

function queryFeatures(query) {
  const pairs = query.replaceAll('+', ' ').split('&').filter(Boolean).slice(0, MAX_QUERY_PARAMETERS)
    .map((part) => {
      const [name] = part.split('=', 1)
      return [unquoted(name), unquoted(part.slice(name.length + 1))]
    })
  const features = askedByQuery(pairs)
  const said = SAID[features.get('protocol')]
  const values = new Map()
  for (const [name, value] of pairs.filter(([each]) => !said?.has(each))) {
    const parameter = `query.${templateValue(name)}`
    values.set(parameter, [...(values.get(parameter) ?? []), templateValue(value)])
  }
  for (const [parameter, each] of values) features.set(parameter, together(each))
  return features
}

/** All values of a repeated parameter as one. */
function together(values) {
  const joined = [...new Set(values)].sort(byCodePoints).join(',')
  return lengthOf(joined) <= MAX_VALUE_LENGTH ? joined : '*'
}

function headerFeatures(headers, wanted, method) {
  const found = []
  for (const [name, value] of headers) {
    if (wanted.has(`header.${name}`)) found.push([`header.${name}`, value.slice(0, MAX_VALUE_LENGTH)])
    if (name === 'user-agent') found.push(['device', deviceType(value)])
    else if (name === OPERATION_HEADER) found.push(...graphqlNamed(value))
    else if (name === 'cookie') found.push(...entries(name, value.split(';'), wanted))
    else if (name === 'baggage') found.push(...entries(name, value.split(','), wanted))
    else if (name === 'content-type' && value.includes('json') && !['GET', 'HEAD'].includes(method)) {
      found.push(['unread', 'body'])
    }
  }
  return found
}

function entries(kind, listed, wanted) {
  return listed.map((entry) => {
    const [pair] = entry.split(';', 1)
    const [name] = pair.split('=', 1)
    return [`${kind}.${name.trim()}`, templateValue(unquoted(pair.slice(name.length + 1).trim()))]
  }).filter(([feature]) => wanted.has(feature))
}

function templateValue(value) {
  const named = lengthOf(value) <= MAX_VALUE_LENGTH && templatePath(`/${value.replaceAll('/', '%2F')}`) !== '/*'
  return named ? value : '*'
}

/** As Python counts: by code points. */
function lengthOf(text) {
  return text.length <= MAX_VALUE_LENGTH ? text.length : [...text].length
}
