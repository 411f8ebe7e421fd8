/** A certificate that signs itself, for servers of tests: no key lies in the repository. */

import { generateKeyPairSync, sign } from 'node:crypto'

const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex')
const COMMON_NAME = Buffer.from('0603550403', 'hex')

/**
 * For a day and one host name.
 * @param {string} host
 * @returns {{key: string, cert: string}} as servers of TLS take them
 */
export function selfSigned(host) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const algorithm = sequence(ECDSA_WITH_SHA256)
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(host)))))
  const day = 86_400_000
  const told = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.from([17])), // serial number
    algorithm,
    name,
    sequence(moment(Date.now() - day), moment(Date.now() + day)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', told, privateKey)]))
  const lines = sequence(told, algorithm, signature).toString('base64').match(/.{1,64}/g).join('\n')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  }
}

function der(tag, content) {
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function sequence(...parts) {
  return der(0x30, Buffer.concat(parts))
}

function moment(milliseconds) {
  const written = new Date(milliseconds).toISOString().replace(/[-:T]|\.\d+/g, '').slice(2)
  return der(0x17, Buffer.from(written))
}
