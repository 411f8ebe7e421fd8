/** Percent-encoding, taken off as Python's `unquote` does it: of broken text it keeps what it can. */

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** @param {string} text */
export function unquoted(text) {
  return text.includes('%') ? text.replace(/[\x00-\x7f]+/g, decoded) : text
}

/** Text that is not ASCII stands for itself; what is escaped is UTF-8. */
function decoded(ascii) {
  const bytes = ascii.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
  return decoder.decode(Buffer.from(bytes, 'latin1'))
}
