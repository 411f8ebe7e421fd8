/**
 * `node --import ldfi-fit/register app.js`: calls become injection points and requests are read, and no
 * line of the application is changed. Nothing without FIT_KEYS.
 */

import http from 'node:http'
import https from 'node:https'

import { failureContext, hasEdge } from './express.js'
import { install } from './index.js'

const HOOKED = Symbol.for('fit.register')

/** Have every server of http and https read the contexts of its requests, but where an edge does. */
function readRequests({ prototype }) {
  const original = prototype.emit
  if (original[HOOKED]) return
  prototype.emit = function emit(event, ...given) {
    if (event !== 'request' || hasEdge(this)) return original.call(this, event, ...given)
    const [request, response] = given
    let heard = false
    failureContext(request, response, () => (heard = original.call(this, event, ...given)))
    return heard
  }
  prototype.emit[HOOKED] = true
}

if (install()) for (const each of [http.Server, https.Server]) readRequests(each)
