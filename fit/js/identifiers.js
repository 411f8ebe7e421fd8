/** Which words are identifiers: the same rules as fit/protocol/identifiers.py, where they are explained. */

const LONG = 40
const FORMS = new RegExp(
  `^(?:${[
    '[+-]?\\d[\\d.,:_+-]*', // 17, 3.14, 1-20, 2026-11-21
    '[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}', // uuid
    '(?=[0-9a-f]*\\d)[0-9a-f]{8,}', // hash
    '(?=[a-f]*\\d[a-f]*\\d)(?=\\d*[a-f])[0-9a-f]{7}', // short hash of git
    '[A-Z0-9]{26}', // ulid
    '[^@]+@[^@]+', // e-mail address
    '[A-Za-z]{0,8}[-_.]?\\d{3,}', // tt0111161, user-1234
    '(?=(?:[^0-9]*\\d){3})[\\w.=-]{16,}', // tokens
  ].join('|')})$`,
)
const QUALIFIED = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/
const VERSION = /^v\d+$/
const NUMBERED = /^(?:\d{5,}[-_][^\n]+|[^\n]+[-_]\d{5,}|[^\n]+[-_][0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12})$/

/** Whether a word stands for one thing of many. @param {string} text */
export function isIdentifier(text) {
  if (!QUALIFIED.test(text)) return isWordOfOne(text)
  return text.split('.').some((part) => !VERSION.test(part) && isWordOfOne(part))
}

function isWordOfOne(text) {
  if (FORMS.test(text) || (/\d/.test(text) && [...text].length > LONG)) return true
  return isDrawn(text) || endsInOne(text)
}

/** Whether words lead up to an identifier, as in a slug, or one to words. */
function endsInOne(text) {
  if (NUMBERED.test(text)) return true
  const at = Math.max(text.lastIndexOf('-'), text.lastIndexOf('_'))
  if (at < 1) return false
  const tail = text.slice(at + 1)
  return isHash(tail) || isDrawn(tail)
}

function isHash(text) {
  const digits = text.replace(/[^0-9]/g, '').length
  return /^[0-9a-f]{7,}$/.test(text) && digits >= 2 && digits < text.length
}

const kindOf = (letter) => {
  if (letter >= '0' && letter <= '9') return 'digit'
  if (letter >= 'a' && letter <= 'z') return 'small'
  if (letter >= 'A' && letter <= 'Z') return 'capital'
  return letter === '-' || letter === '_' ? 'mark' : ''
}
const isLetter = (kind) => kind === 'small' || kind === 'capital'

/** Whether letters and digits look as if they were drawn by lot. */
function isDrawn(text) {
  const size = text.length
  if (size < 8) return false
  const counts = { digit: 0, small: 0, capital: 0, mark: 0 }
  let within = 0, changes = 0, run = 0, longest = 0, before = ''
  for (const letter of text) {
    const kind = kindOf(letter)
    if (!kind) return false
    counts[kind] += 1
    const behind = before === 'digit' && isLetter(kind)
    within += behind
    changes += behind || (kind === 'digit' && isLetter(before)) ||
      (before === 'small' && kind === 'capital')
    run = kind === 'small' ? run + 1 : 0
    longest = Math.max(longest, run)
    before = kind
  }
  if (!within || (counts.mark && size < 16)) return false
  if (counts.small && counts.capital) {
    const mixed = within >= 2 || (size >= 16 && 3 * changes >= size)
    return size >= 10 && mixed && longest < (size >= 16 ? 6 : 4)
  }
  if (counts.mark) return false
  if (counts.capital) return size >= 10 || within >= 2
  return within >= 2 && ((size >= 10 && counts.digit >= 3) || size >= 20)
}
