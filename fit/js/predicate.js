/** Predicates over features of requests: what a request class is to an edge. As fit/protocol/predicate.py has them. */

const FAMILIES = new Set([
  'operation', 'method', 'path', 'query', 'header', 'route', 'protocol', 'falcor', 'graphql', 'jsonrpc',
  'device', 'cookie', 'baggage',
])
/** Of these, what was not read may tell more. */
const HIDDEN = new Set(['protocol', 'falcor', 'graphql', 'jsonrpc'])

/** Stands beside conditions that an older edge would wrongly hold for met. We are none. */
const GUARD = { feature: 'features', value: '2', negated: false }

/**
 * `value` null: the feature is there at all.
 * @typedef {{feature: string, value: string | null, negated: boolean}} Condition
 */

/**
 * @param {unknown[]} data
 * @returns {Condition[]}
 * @throws {TypeError}
 */
export function predicateOf(data) {
  return data.filter((each) => !isGuard(each)).map(conditionOf)
}

function isGuard(data) {
  const names = Object.keys(GUARD)
  return Object.keys(data ?? {}).length === names.length && names.every((name) => data[name] === GUARD[name])
}

function conditionOf({ feature, value, negated }) {
  if (typeof feature !== 'string' || (value !== null && typeof value !== 'string') || typeof negated !== 'boolean') {
    throw new TypeError('this is not a condition')
  }
  return { feature, value, negated }
}

/**
 * Whether every condition holds.
 * @param {Condition[]} conditions
 * @param {Map<string, string>} features
 */
export function holds(conditions, features) {
  return conditions.every((condition) => met(condition, features))
}

function met({ feature, value, negated }, features) {
  if (negated) return !matches(feature, value, features) && mayBeDenied(feature, features)
  return matches(feature, value, features)
}

function matches(feature, value, features) {
  if (feature === 'route') return fits(value ?? '', features.get('path') ?? '')
  return value === null ? features.has(feature) : features.get(feature) === value
}

/** Whether a path fits a template: `*` there stands for any one segment. */
function fits(template, path) {
  const wanted = template.split('/')
  const given = path.split('/')
  return wanted.length === given.length
    && wanted.every((each, at) => each === given[at] || (each === '*' && given[at] !== ''))
}

/** Whether it is known that a request does not have a feature. */
function mayBeDenied(feature, features) {
  const [family] = feature.split('.', 1)
  return FAMILIES.has(family) && !(HIDDEN.has(family) && features.has('unread'))
}
