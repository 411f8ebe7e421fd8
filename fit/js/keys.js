/** The keys that sign failure contexts. Whoever lacks them injects nothing. */

import { createHmac, timingSafeEqual } from 'node:crypto'

const MIN_SECRET_LENGTH = 16 // characters
const MAC_BYTES = 16
const KEY_ID = /^[\w-]{1,16}$/

/** FIT_KEYS cannot be read. Messages show no secret. */
export class KeyFormatError extends Error {}

export class Keys {
  /** @type {Map<string, string>} id → secret; private, so that no logger prints it */
  #secrets

  /** @param {Map<string, string>} secrets */
  constructor(secrets) {
    this.#secrets = secrets
  }

  /** The ids of all keys; the first one signs. */
  get ids() {
    return [...this.#secrets.keys()]
  }

  /** The id of the key that signs. */
  get signingId() {
    return this.ids[0]
  }

  /**
   * Read the value of FIT_KEYS: ID:SECRET pairs, separated by commas.
   * @param {string} text
   * @throws {KeyFormatError}
   */
  static parse(text) {
    const secrets = new Map()
    const pairs = text.split(',').map((pair) => pair.trim()).filter(Boolean)
    for (const [index, pair] of pairs.entries()) {
      const colon = pair.indexOf(':')
      const id = pair.slice(0, Math.max(colon, 0))
      const secret = pair.slice(colon + 1)
      if (!KEY_ID.test(id)) {
        throw new KeyFormatError(`key number ${index + 1} in FIT_KEYS is not ID:SECRET`)
      }
      if ([...secret].length < MIN_SECRET_LENGTH) {
        throw new KeyFormatError(`the secret of key ${id} in FIT_KEYS is shorter than 16 characters`)
      }
      if (secrets.has(id)) throw new KeyFormatError(`key ${id} stands in FIT_KEYS twice`)
      secrets.set(id, secret)
    }
    if (secrets.size === 0) throw new KeyFormatError('FIT_KEYS is empty; write ID:SECRET')
    return new Keys(secrets)
  }

  /**
   * The MAC of `payload` under the key that signs.
   * @param {string} payload
   */
  sign(payload) {
    return macOf(this.#secrets.get(this.signingId), payload)
  }

  /**
   * Whether `mac` signs `payload` under the named key. Constant time in `mac`.
   * @param {string} payload
   * @param {string} id
   * @param {string} mac
   */
  verify(payload, id, mac) {
    const secret = this.#secrets.get(id)
    if (secret === undefined) return false
    const expected = Buffer.from(macOf(secret, payload))
    const given = Buffer.from(mac)
    return given.length === expected.length && timingSafeEqual(given, expected)
  }
}

function macOf(secret, payload) {
  const digest = createHmac('sha256', secret).update(payload).digest()
  return digest.subarray(0, MAC_BYTES).toString('base64url')
}
