/** Real servers on loopback, in folders of their own. They stand on the machine, or tests of them are skipped. */

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/** Where a program stands; undefined where the machine has none. CI has to have them all. */
export function installed(program) {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).map((each) => join(root, each, 'bin')) : []
  const folders = [...versions, ...(process.env.PATH ?? '').split(delimiter)]
  const path = folders.map((each) => join(each, program)).find((each) => existsSync(each))
  if (!path && process.env.CI) throw new Error(`${program} is not installed, and CI has to run this test`)
  return path
}

/** What a test says that is skipped for want of a program; false where it is there. */
export function without(program) {
  return installed(program) ? false : `${program} is not installed`
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

/** PostgreSQL refuses to run as root. */
function unprivileged() {
  if (process.getuid() !== 0) return {}
  const [, , uid, gid] = readFileSync('/etc/passwd', 'utf8').split('\n')
    .map((line) => line.split(':')).find(([name]) => name === 'nobody')
  return { uid: Number(uid), gid: Number(gid) }
}

/** A PostgreSQL server. Whoever is on the machine may do anything with it. */
export async function postgresql(settings = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'ldfi-pg-'))
  chmodSync(folder, 0o777)
  const options = { ...unprivileged(), cwd: folder, stdio: 'pipe' }
  const data = join(folder, 'data')
  const words = ['--username', 'ldfi', '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C', '--no-sync']
  execFileSync(installed('initdb'), ['--pgdata', data, ...words], options)
  const port = await freePort()
  const chosen = { port, listen_addresses: '127.0.0.1', fsync: 'off', ...settings }
  const flags = Object.entries(chosen).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(installed('postgres'), ['-D', data, '-k', folder, ...flags], { ...options, stdio: 'ignore' })
  await listening(port)
  return { port, stop: () => ended(server, 'SIGQUIT', folder) }
}

export async function redis(...words) {
  const folder = mkdtempSync(join(tmpdir(), 'ldfi-redis-'))
  const port = await freePort()
  const plain = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
  const server = spawn(installed('redis-server'), [...plain, ...words], { stdio: 'ignore' })
  await listening(port)
  return { port, stop: () => ended(server, 'SIGKILL', folder) }
}

async function ended(server, signal, folder) {
  server.kill(signal)
  if (server.exitCode === null) await once(server, 'exit')
  rmSync(folder, { recursive: true, force: true })
}

async function listening(port) {
  const end = Date.now() + 60_000
  while (Date.now() < end) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    } finally {
      socket.destroy()
    }
  }
  throw new Error(`nothing listens at ${port}`)
}

/** What stands between a client and its server: `sockets` are the client's ends. */
export async function between(port) {
  const sockets = new Set()
  const server = createServer((client) => {
    const real = connect(port, '127.0.0.1')
    sockets.add(client)
    client.on('close', () => sockets.delete(client) && real.destroy()).on('error', () => {})
    real.on('close', () => client.destroy()).on('error', () => {})
    client.pipe(real).pipe(client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = () => {
    for (const each of sockets) each.destroy()
    server.close()
  }
  return { port: server.address().port, sockets, stop }
}
