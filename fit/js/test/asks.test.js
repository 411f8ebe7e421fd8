/** An edge whose service streams offers and is asked for devices: a small one, on loopback. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, afterEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'

import { armOf, bitsOf, claimOf, markOf } from '../allocation.js'
import { Allowances } from '../allowance.js'
import { steady } from '../clock.js'
import { Edge, standing } from '../edge.js'
import { before, install } from '../index.js'
import { Known } from '../known.js'
import { eventsOf } from '../line.js'
import { RulesPoll } from '../poll.js'
import { Lease, MalformedRules } from '../rules.js'

process.env.FIT_KEYS = 'k1:0123456789abcdef'
install('node')

const open = []
afterEach(() => open.splice(0).forEach((each) => each()))

/** A control plane that streams offers, hands out leases and answers asks as the test says. */
class Service {
  polls = []
  asks = []
  streams = new Set()
  opened = 0
  number = 0
  rules = []
  answer = (_ask, version) => ({ granted: true, lease_seconds: 5, version })

  static async open() {
    const service = new Service()
    const server = createServer((request, response) => service.#serve(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    open.push(() => server.close(), () => server.closeAllConnections())
    service.url = `http://127.0.0.1:${server.address().port}`
    return service
  }

  get version() {
    return `epoch-${this.number}`
  }

  document(seconds) {
    return JSON.stringify({ version: this.version, lease_seconds: seconds, asks: true, rules: this.rules })
  }

  /** Put a rule in force, with half of all devices in each arm. */
  arm(members, experiment = 'e1') {
    this.rules = [{
      experiment, salt: experiment, predicate: [], treatment: 0.5, control: 0.5, delay_ms: 1, faults: [], members,
    }]
    this.number += 1
    for (const stream of this.streams) this.#offer(stream)
  }

  #offer(stream) {
    stream.write(`: hello\r\nevent: rules\r\ndata: ${this.document(0)}\r\n\r\n`)
  }

  #serve(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.url)
    if (pathname.endsWith('/asks')) return this.#asked(request, response)
    if (request.headers.accept.startsWith('text/event-stream')) {
      assert.ok(!searchParams.has('asked'), 'a service without streams would refuse it')
      this.opened += 1
      this.streams.add(response.writeHead(200, { 'content-type': 'text/event-stream' }))
      response.on('close', () => this.streams.delete(response))
      return this.#offer(response)
    }
    this.polls.push(Object.fromEntries(searchParams))
    const wait = searchParams.get('version') === this.version ? Number(searchParams.get('wait')) : 0
    setTimeout(() => response.end(this.document(5)), 1000 * wait)
  }

  async #asked(request, response) {
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece
    this.asks.push(JSON.parse(text))
    const answer = await this.answer(this.asks.at(-1), this.version)
    if (typeof answer === 'number') response.writeHead(answer).end()
    else response.end(JSON.stringify(answer))
  }

  /** An edge that knows these rules. It is patient, for the machine may have much to do. */
  async edge(withinMs = 60_000) {
    const edge = new Edge(new RulesPoll(this.url, 't'), {})
    edge.poll.asks.withinMs = withinMs
    edge.poll.start()
    open.unshift(() => edge.poll.stop())
    await eventually('the edge knows the rules', () => edge.poll.known.rules().lease.version === this.version)
    return edge
  }
}

async function eventually(what, holds) {
  for (const deadline = performance.now() + 10_000; !holds(); await pause(2)) {
    assert.ok(performance.now() < deadline, `it never holds that ${what}`)
  }
}

const CLAIM = claimOf('e1', 0.5, 0.5)
const NAMES = { treatment: [], control: [] }
for (let n = 0; n < 120; n++) NAMES[armOf(CLAIM, bitsOf(markOf(`d${n}`)))].push(`d${n}`)

/** The nth device that falls in an arm. */
const device = (arm, nth = 0) => NAMES[arm][nth]

const decided = async (edge, name) => edge.onward('', name, () => new Map())

for (const arm of ['treatment', 'control']) {
  test(`a device in ${arm} is asked for, and stamped when it is granted`, async () => {
    const service = await Service.open()
    service.arm(0)
    const edge = await service.edge()
    for (const again of [false, true]) { // a device that is enrolled is asked for no more
      const { header, ...rest } = await decided(edge, device(arm))
      assert.match(header, new RegExp(`^fit=.*\\.e1\\.${arm[0]}\\.`))
      assert.deepEqual(rest, { again })
    }
    assert.deepEqual(service.asks, [{ edge: edge.poll.edge, experiment: 'e1', arm, ask: 1, version: 'epoch-1' }])
    const parameter = { treatment: 'used', control: 'control' }[arm]
    await eventually('it is told', () => service.polls.at(-1)?.[parameter] === 'e1:1')
    assert.deepEqual([service.polls.at(-1).asked, service.polls.at(-1).wants], ['1', ''])
  })
}

test('offers alone stamp nobody, and with nobody enrolled nothing is polled', async () => {
  const service = await Service.open()
  service.answer = (_ask, version) => ({ granted: false, lease_seconds: 0, version })
  service.arm(0)
  const edge = await service.edge()
  assert.equal((await decided(edge, device('treatment'))).header, '')
  await eventually('the ask is told to be settled', () => service.polls.at(-1)?.asked === '1')
  const polls = service.polls.length
  await pause(1500)
  assert.ok(service.polls.length <= polls + 1, 'one may have been under way')
  assert.equal(service.opened, 1)
})

test('an allowance is used before anybody is asked for', async () => {
  const service = await Service.open()
  service.answer = (_ask, version) => ({ granted: false, lease_seconds: 0, version })
  service.arm(1)
  const edge = await service.edge()
  await eventually('a lease has come', () => edge.poll.known.rules().ends > steady())
  assert.match((await decided(edge, device('treatment', 0))).header, /^fit=/)
  assert.equal((await decided(edge, device('treatment', 1))).header, '')
  assert.equal(service.asks.length, 1)
})

const GRANTED = { granted: true, lease_seconds: 5, version: 'epoch-1' }
const NOTHING = {
  'refused': { answer: { granted: false, lease_seconds: 0, version: 'epoch-1' } },
  'for other rules': { answer: { ...GRANTED, version: 'epoch-2' } },
  'late': { takes: 60, late: true },
  'failing': { answer: 503, late: true },
  'no document': { answer: [], late: true },
  'without a lease': { answer: { ...GRANTED, lease_seconds: undefined }, late: true },
}
for (const [name, { answer, takes, late = false }] of Object.entries(NOTHING)) {
  test(`an answer that is ${name} stamps nobody`, async () => {
    const service = await Service.open()
    service.answer = takes ? () => pause(takes).then(() => GRANTED) : () => answer
    service.arm(0)
    const edge = await service.edge(takes ? takes / 3 : undefined)
    const began = performance.now()
    for (let n = 0; n < 3; n++) {
      assert.equal((await decided(edge, device('control'))).header, '')
      await pause(40) // also when the answer has come
    }
    if (late && performance.now() - began < 250) assert.equal(service.asks.length, 1, 'the first one failed')
    await eventually('the ask is told to be settled', () => Number(service.polls.at(-1)?.asked) > 0)
    const told = service.polls.at(-1)
    assert.deepEqual([told.late !== '0', told.used, told.control], [late, '', ''])
  })
}

test('asks that come at once for one device are one, and no more are under way than there are connections', async () => {
  const service = await Service.open()
  let most = 0
  let under = 0
  service.answer = async (_ask, version) => {
    most = Math.max(most, ++under)
    await pause(5)
    under -= 1
    return { ...GRANTED, version }
  }
  service.arm(0)
  const edge = await service.edge()
  const same = await Promise.all(Array.from({ length: 8 }, () => decided(edge, device('treatment'))))
  assert.deepEqual(same.map(({ again }) => again), [false, ...Array(7).fill(true)])
  assert.equal(service.asks.length, 1)
  const all = await Promise.all(Array.from({ length: 20 }, (_, n) => decided(edge, device('control', n))))
  assert.deepEqual([all.filter(({ header }) => header).length, Math.min(most, 5)], [20, 4])
})

test('no request waits for a service that hangs', async () => {
  const service = await Service.open()
  const answers = []
  service.answer = () => new Promise((resolve) => answers.push(resolve))
  service.arm(0)
  const edge = await service.edge(20)
  const all = await Promise.all(NAMES.control.slice(0, 40).map((each) => decided(edge, each)))
  assert.ok(all.every(({ header }) => header === ''))
  assert.equal(edge.poll.allowances.report().late, 40)
  answers.forEach((resolve) => resolve(GRANTED))
  await pause(100)
  assert.ok(service.asks.length <= 4, 'what had no connection in time is never sent')
  assert.equal(edge.poll.allowances.report().counts.size, 0)
})

test('rules that have changed meanwhile make a grant void', async () => {
  const service = await Service.open()
  service.arm(0)
  const edge = await service.edge()
  edge.poll.known.offer(new Lease([], 0, 'epoch-2', true))
  const whom = { experiment: 'e1', arm: 'treatment', mark: 1n }
  assert.equal(await edge.poll.asks.enrol('epoch-1', whom), undefined)
})

test('a stream is opened anew, and its offers go with it', async () => {
  const service = await Service.open()
  service.arm(0)
  const edge = await service.edge()
  for (const stream of service.streams) stream.destroy()
  await eventually('the offers are dropped', () => !edge.poll.known.rules().lease.rules.length)
  service.arm(0, 'e2')
  await eventually('they are back', () => edge.poll.known.rules().lease.version === service.version)
  assert.equal(service.opened, 2)
})

test('a server of node:http serves a request whose device is asked for as any other', async () => {
  const service = await Service.open()
  service.arm(0)
  const edge = await service.edge()
  const told = before([standing(() => edge)], ({ headers }, response) => response.end(headers.baggage))
  const server = createServer(told).listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(() => server.close(), () => server.closeAllConnections())
  const url = `http://127.0.0.1:${server.address().port}/`
  const answer = await fetch(url, { headers: { 'x-device-id': device('control'), baggage: 'a=b' } })
  assert.match(await answer.text(), /^fit=.*,a=b$/)
})

test('a service without streams is polled as ever', async () => {
  const asked = []
  const rule = {
    experiment: 'e1', salt: 'e1', predicate: [], treatment: 1, control: 0, delay_ms: 1, faults: [], members: 1,
  }
  const server = createServer(({ url }, response) => {
    asked.push(Object.fromEntries(new URL(url, 'http://x').searchParams))
    setTimeout(() => {
      response.end(JSON.stringify({ version: 'v', lease_seconds: 5, rules: [rule] }))
    }, asked.at(-1).version && 1000 * asked.at(-1).wait)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(() => server.close(), () => server.closeAllConnections())
  const edge = new Edge(new RulesPoll(`http://127.0.0.1:${server.address().port}`, 't'), {})
  open.unshift(() => edge.poll.stop())
  edge.poll.start()
  await eventually('a lease has come', () => edge.poll.known.rules().lease.rules.length)
  assert.match((await decided(edge, 'd1')).header, /^fit=/)
  assert.equal((await decided(edge, 'd2')).header, '')
  await eventually('it wants more', () => asked.at(-1).wants === 'e1')
  for (const each of asked) {
    assert.deepEqual(Object.keys(each), ['version', 'wait', 'edge', 'used', 'control', 'wants'])
  }
})

const of = (version) => new Lease([{ experiment: `of-${version}`, members: 0, predicate: [] }], 0, version)
const ORDERS = [
  ['e-10', 'hold', 'e-9', 'offer', 'e-10'], ['e-9', 'hold', 'e-10', 'offer', 'e-10'],
  ['e-10', 'offer', 'e-9', 'hold', 'e-10'], ['e-9', 'offer', 'e-10', 'hold', 'e-10'],
  ['e-9', 'offer', 'f-1', 'hold', 'f-1'], ['v', 'offer', 'w', 'hold', 'w'],
]
test('older rules never replace newer ones', () => {
  for (const [first, how, second, then, want] of ORDERS) {
    const known = new Known(new Allowances())
    known[how](of(first), steady() + 60)
    known[then](of(second), steady() + 60)
    assert.equal(known.rules().lease.version, want, `${how} ${first}, ${then} ${second}`)
  }
})

test('what is offered is in force for as long as what was before', () => {
  const known = new Known(new Allowances())
  known.offer(of('e-1'))
  assert.deepEqual([known.rules().lease.version, known.rules().ends], ['e-1', 0])
  const ends = steady() + 60
  assert.equal(known.grant('e-1', ends).ends, ends)
  assert.equal(known.grant('e-1', ends - 1).ends, ends)
  assert.equal(known.grant('e-0', ends), undefined)
  known.offer(of('e-2'))
  known.withdraw()
  assert.deepEqual([known.rules().lease.version, known.rules().ends], ['e-2', ends])
  known.lapse()
  assert.equal(known.rules().lease.version, '')
  known.close()
  known.offer(of('e-3'))
  assert.equal(known.rules().lease.version, '')
})

test('an offer gives no allowance, and takes none back', () => {
  const allowances = new Allowances()
  allowances.offer([{ experiment: 'e1', members: 3 }, { experiment: 'e2', members: null }])
  for (const experiment of ['e1', 'e2']) {
    assert.ok(!allowances.admit(experiment, 'control', 1n) && !allowances.usedUp(experiment, 'control', 1n))
  }
  allowances.renew([{ experiment: 'e1', members: 3 }])
  allowances.offer([{ experiment: 'e1', members: 0 }])
  assert.ok(allowances.admit('e1', 'treatment', 1n))
})

test('asks are said to be settled when all before them are, and whom they enrolled is reported', () => {
  const allowances = new Allowances()
  const names = Array.from({ length: 80 }, (_, n) => `${n}-${'x'.repeat(60)}`)
  allowances.renew(names.map((experiment) => ({ experiment, members: 0 })))
  const [one, two, three] = [1, 2, 3].map(() => allowances.asks.next())
  const settled = []
  for (const each of [three, one, two]) {
    allowances.asks.settle(each)
    settled.push(allowances.report().asked)
  }
  assert.deepEqual(settled, [0, one, three])
  allowances.settle(allowances.report())
  assert.ok(!allowances.news)
  for (const name of names) { // more than a URL holds
    allowances.enrol(name, 'control', 1n)
    allowances.asks.settle(allowances.asks.next())
  }
  assert.equal(allowances.report().asked, three)
})

test('events are read, however they come', async () => {
  const read = async (text, size) => {
    const events = []
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, n) => text.slice(n * size, (n + 1) * size))
    for await (const event of eventsOf(pieces.map((each) => Buffer.from(each)))) events.push(event)
    return events
  }
  const text = ': hello\r\nid: 1\ndata: a\ndata:b\n\n\ndata:  c\r\n\r\ndata: half'
  for (const size of [1, 2, 7, 100]) assert.deepEqual(await read(text, size), ['', 'a\nb\n', ' c\n'])
  await assert.rejects(read(`data: ${' '.repeat(5_000_000)}`, 65_536), MalformedRules)
  await assert.rejects(read('data: aa\n'.repeat(2_000_000), 65_536), MalformedRules)
  await assert.rejects(async () => {
    for await (const _ of eventsOf([Buffer.from([0x64, 0xff, 0x0a])])) assert.fail()
  }, MalformedRules)
})

after(() => open.forEach((each) => each()))
