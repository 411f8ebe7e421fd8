/** A broker of Kafka that knows what a producer asks: versions, one topic of one partition, and messages. */

import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'

const Encoder = createRequire(import.meta.url)('kafkajs/src/protocol/encoder')
const [PRODUCE, METADATA, VERSIONS] = [0, 3, 18]

/**
 * `produced` counts the requests to which it gave an answer; while `silent`, it gives none. `leader` is the
 * port of who takes messages, if that is another.
 */
export async function broker(topic, leader) {
  const sockets = new Set()
  const told = { produced: 0, silent: false, received: [] }
  const server = createServer((socket) => {
    let kept = Buffer.alloc(0)
    sockets.add(socket)
    socket.on('error', () => {}).on('data', (chunk) => {
      kept = Buffer.concat([kept, chunk])
      while (kept.length >= 4 && kept.length >= 4 + kept.readInt32BE(0)) {
        const request = kept.subarray(4, 4 + kept.readInt32BE(0))
        kept = kept.subarray(4 + kept.readInt32BE(0))
        answer(socket, request)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()

  function answer(socket, request) {
    const [key, version, id] = [request.readInt16BE(0), request.readInt16BE(2), request.readInt32BE(4)]
    if (key === PRODUCE && told.silent) return
    if (key === PRODUCE) {
      told.produced++
      told.received.push(request)
    }
    const body = new Encoder().writeInt32(id).writeEncoder(ANSWERS[key](version))
    socket.write(new Encoder().writeInt32(body.size()).writeEncoder(body).buffer)
  }

  const ANSWERS = {
    [VERSIONS]: (version) => {
      const known = [[PRODUCE, 3], [METADATA, 1], [VERSIONS, 2]].map(([key, newest]) =>
        new Encoder().writeInt16(key).writeInt16(0).writeInt16(newest))
      const listed = new Encoder().writeInt16(0).writeArray(known)
      return version ? listed.writeInt32(0) : listed
    },
    [METADATA]: () => {
      const all = (leader ? [[1, leader], [2, port]] : [[1, port]]).map(([id, at]) =>
        new Encoder().writeInt32(id).writeString('127.0.0.1').writeInt32(at).writeString(null))
      const partition = new Encoder().writeInt16(0).writeInt32(0).writeInt32(1).writeArray([1]).writeArray([1])
      const described = new Encoder().writeInt16(0).writeString(topic).writeBoolean(false).writeArray([partition])
      return new Encoder().writeArray(all).writeInt32(1).writeArray([described])
    },
    [PRODUCE]: () => {
      const partition = new Encoder().writeInt32(0).writeInt16(0).writeInt64(7).writeInt64(-1)
      const written = new Encoder().writeString(topic).writeArray([partition])
      return new Encoder().writeArray([written]).writeInt32(0)
    },
  }

  const stop = () => {
    server.close()
    for (const each of sockets) each.destroy()
  }
  return { port, told, stop }
}
