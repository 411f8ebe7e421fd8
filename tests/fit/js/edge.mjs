// A front as somebody writes it, which is the edge: it asks UPSTREAM, with the baggage that a request goes on with.

import { createServer } from 'node:http'

const { before, edge, install } = await import(process.env.FIT_JS)
install()

const server = createServer(before([edge], async (request, response) => {
  const { baggage } = request.headers
  const answer = await fetch(process.env.UPSTREAM, { headers: baggage ? { baggage } : {} })
  response.end(await answer.text())
}))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.on('SIGTERM', () => server.close(() => server.closeAllConnections()))
