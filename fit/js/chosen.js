/** Which headers, cookies and entries of the baggage spans shall tell of: those that FIT_FEATURES names. */

const KINDS = new Set(['header', 'cookie', 'baggage'])
const MOST = 20
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/
const SECRET = /auth|cookie|token|secret|session|passw|api-?key|credential/i

/**
 * Read a list such as `header.x-plan,cookie.ab`. What cannot be chosen is left out, with a warning.
 * @param {string} text
 * @returns {Set<string>}
 */
export function chosen(text) {
  const found = new Set()
  for (const each of text.split(',').map((item) => item.trim()).filter(Boolean)) {
    const [kind] = each.split('.', 1)
    const name = each.slice(kind.length + 1)
    if (!KINDS.has(kind) || !NAME.test(name) || SECRET.test(name)) {
      process.emitWarning(`FIT_FEATURES names ${each.slice(0, 80)}, which is no feature that can be chosen`)
    } else {
      found.add(`${kind}.${kind === 'header' ? name.toLowerCase() : name}`)
    }
  }
  return new Set([...found].sort().slice(0, MOST))
}
