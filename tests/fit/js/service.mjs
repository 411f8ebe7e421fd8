// A service as somebody writes it: it answers with what its call of UPSTREAM came to.

import { subscribe } from 'node:diagnostics_channel'
import { createServer } from 'node:http'

subscribe('fit.fault', () => {}) // OpenTelemetry is not here: whoever listens makes it proof

const { failureContext, install } = await import(process.env.FIT_JS)
install()

const server = createServer((request, response) =>
  failureContext(request, response, async () => {
    const answer = await fetch(`${process.env.UPSTREAM}/titles/17`)
    response.end(`${answer.status} ${await answer.text()}`)
  }),
)
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
