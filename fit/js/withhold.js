/**
 * Takes our entry out of calls to hosts that it may not be sent to, where their headers are written: beneath whatever
 * has put it there. See hosts.js.
 */

import { subscribe } from 'node:diagnostics_channel'
import http from 'node:http'
import http2 from 'node:http2'
import { syncBuiltinESMExports } from 'node:module'

import { values, without } from './baggage.js'
import { hostsOf, passing } from './hosts.js'

const HOOKED = Symbol.for('fit.withhold')

/** Withhold it in calls of http, https, undici, fetch and http2 (and so grpc-js). Doing it again changes nothing. */
export function withholdFromStrangers() {
  if (http.ClientRequest.prototype._storeHeader[HOOKED]) return
  hookHttp1(http.ClientRequest.prototype)
  subscribe('undici:request:create', ({ request }) => {
    try {
      guardUndici(request)
    } catch {
      // what a listener throws would end the process
    }
  })
  hookHttp2()
}

function hookHttp1(prototype) {
  const original = prototype._storeHeader
  prototype._storeHeader = function (...given) {
    const stored = original.apply(this, given)
    if (typeof this._header === 'string' && /\r\nbaggage:/i.test(this._header)) this._header = head(this)
    return stored
  }
  prototype._storeHeader[HOOKED] = true
}

/** The head of a request as it may go to its host. */
function head({ _header: written, host, path, socketPath }) {
  const hosts = () => hostsOf(socketPath ? 'localhost' : host, path)
  const authorization = () => /\r\nauthorization:([^\r]*)/i.exec(written)?.[1]
  return written.replace(/\r\n(baggage): *([^\r]*)/gi, (line, name, header) => {
    const left = passing(header, hosts, authorization)
    if (left === header) return line
    return left ? `\r\n${name}: ${left}` : ''
  })
}

/** Of a request of undici, which is about to be sent: what it has, and what instrumentation is about to add. */
function guardUndici(request) {
  const { addHeader, headers } = request
  const hosts = () => hostsOf(new URL(request.origin).hostname, request.path)
  const authorization = () => {
    const at = headers.findIndex((each, n) => n % 2 === 0 && String(each).toLowerCase() === 'authorization')
    return at < 0 ? undefined : String(headers[at + 1])
  }
  let carried = false
  const pass = (value) => {
    const left = carried ? without(String(value)) : passing(String(value), hosts, authorization)
    carried ||= values(left).length > 0 // where it is copied by hand and added as well: of two entries none would count
    return left
  }
  for (let at = 0; at < headers.length; at += 2) {
    if (String(headers[at]).toLowerCase() === 'baggage') headers[at + 1] = [headers[at + 1]].flat().map(pass).join(',')
  }
  request.addHeader = function (name, value) {
    if (name.toLowerCase() !== 'baggage') return addHeader.call(this, name, value)
    const left = pass(value)
    return left ? addHeader.call(this, name, left) : this
  }
}

function hookHttp2() {
  const { connect } = http2
  http2.connect = function (authority, ...given) {
    const session = connect.call(this, authority, ...given)
    const { request } = session
    session.request = function (headers, ...more) {
      return request.call(this, fields(headers, () => new URL(authority).hostname), ...more)
    }
    return session
  }
  syncBuiltinESMExports()
}

/** The fields of a request of HTTP/2 as they may go to its host. */
function fields(headers, host) {
  const name = Object.keys(headers ?? {}).find((each) => each.toLowerCase() === 'baggage')
  if (name === undefined) return headers
  const asked = () => /^(\[.*\]|[^:]*)(?::\d+)?$/.exec(headers[':authority'] ?? host())?.[1] ?? ''
  const written = [headers[name]].flat().join(',')
  const left = passing(written, () => [host(), asked()], () => headers.authorization)
  if (left === written) return headers
  const { [name]: _, ...rest } = headers
  return left ? { ...rest, [name]: left } : rest
}
