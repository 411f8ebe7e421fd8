/** What npm would publish, installed into a folder of its own: imports, requires, types, no lines changed. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { FIT_KEYS } from '../support/sign.js'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
const LIBRARIES = join(PACKAGE, 'node_modules')
const APP = `
import { createServer, get } from 'node:http'
import { once } from 'node:events'
import { contextOf } from './sign.js'

const listening = async (handler) => {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}
const upstream = await listening((request, response) => response.end('fine'))
const callee = '127.0.0.1:' + upstream.address().port
const service = await listening(async (request, response) => {
  response.end(String((await fetch('http://' + callee + '/titles/17')).status))
})
const value = contextOf([['e', 'shop>http:GET:' + callee + '/titles/*']])
for (const at of [1, 2]) {
  get({ port: service.address().port, headers: { baggage: 'fit=' + value } }, async (response) => {
    for await (const chunk of response) console.log(String(chunk))
    if (at === 2) process.exit()
  })
  await new Promise((resolve) => setTimeout(resolve, 300))
}
`
const TRACING = `
import { trace } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
const resource = resourceFromAttributes({ 'service.name': 'shop' })
trace.setGlobalTracerProvider(new BasicTracerProvider({ resource }))
`
const TYPED = `
import { before, current, decode, edge, failureContext, forFastify, forKoa, install, Keys } from 'ldfi-fit'
import 'ldfi-fit/register'
import { createServer } from 'node:http'
const on: boolean = install('shop')
createServer(before([edge, failureContext], (request, response) => response.end(String(on))))
const arm: 'treatment' | 'control' | undefined = current()?.arm
const kinds: string[] = [...decode(Keys.parse('k1:x'), 'x', 1).injections.values()].map((each) => each.kind)
export const hooks = [forFastify(edge), forKoa(edge), arm, kinds]
`

let folder

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ldfi-fit-'))
  await run('npm', ['pack', '--silent', '--offline', '--pack-destination', folder], PACKAGE)
  await writeFile(join(folder, 'package.json'), '{"type": "module", "private": true}')
  const { version } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'))
  const words = ['install', '--silent', '--offline', '--no-audit', '--no-fund', `./ldfi-fit-${version}.tgz`]
  await run('npm', words, folder)
  await writeFile(join(folder, 'app.js'), APP)
  await writeFile(join(folder, 'tracing.js'), TRACING)
  const sign = await readFile(join(PACKAGE, 'test/support/sign.js'), 'utf8')
  await writeFile(join(folder, 'sign.js'), sign.replace('../../points.js', 'ldfi-fit'))
})
after(() => rm(folder, { recursive: true, force: true }))

/** Run a program; its exit code, and what it said. */
function run(program, words, cwd, environment = {}) {
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, FIT_KEYS, ...environment }
  return new Promise((resolve, reject) => {
    execFile(program, words, { cwd, env, timeout: 60_000 }, (error, out, err) => {
      if (error && !Number.isInteger(error.code)) reject(error)
      else resolve({ code: error?.code ?? 0, out, err })
    })
  })
}

const node = (...words) => run(process.execPath, words, folder)
const answers = ({ out }) => out.trim().split('\n')
const warnings = ({ err }) => err.match(/fit injects nothing/g)?.length ?? 0

/** Work with OpenTelemetry beside the application. */
async function withOpenTelemetry(work) {
  const there = join(folder, 'node_modules', '@opentelemetry')
  await symlink(join(LIBRARIES, '@opentelemetry'), there)
  await work().finally(() => rm(there))
}

test('without OpenTelemetry nothing is injected, which is said once', async () => {
  const named = { OTEL_SERVICE_NAME: 'shop' }
  const told = await run(process.execPath, ['--import', 'ldfi-fit/register', 'app.js'], folder, named)
  assert.deepEqual([answers(told), warnings(told)], [['200', '200'], 1], told.err)
})

test('with it node --import is all, and the provider says the name', async () => {
  await withOpenTelemetry(async () => {
    const told = await node('--import', 'ldfi-fit/register', '--import', './tracing.js', 'app.js')
    assert.deepEqual([answers(told), warnings(told)], [['503', '503'], 0], told.err)
    const off = await node('--import', './tracing.js', 'app.js')
    assert.deepEqual(answers(off), ['200', '200'], off.err)
  })
})

test('a package that is a link proves what it does, and else does nothing', async () => {
  const installed = join(folder, 'node_modules', 'ldfi-fit')
  const elsewhere = await mkdtemp(join(tmpdir(), 'ldfi-fit-linked-'))
  await cp(installed, join(elsewhere, 'js'), { recursive: true })
  await rm(installed, { recursive: true })
  await symlink(join(elsewhere, 'js'), installed)
  try {
    const named = { OTEL_SERVICE_NAME: 'shop' }
    const bare = await run(process.execPath, ['--import', 'ldfi-fit/register', 'app.js'], folder, named)
    assert.deepEqual([answers(bare), warnings(bare)], [['200', '200'], 1], bare.err)
    await withOpenTelemetry(async () => {
      const told = await node('--import', 'ldfi-fit/register', '--import', './tracing.js', 'app.js')
      assert.deepEqual([answers(told), warnings(told)], [['503', '503'], 0], told.err)
    })
  } finally {
    await rm(installed)
    await cp(join(elsewhere, 'js'), installed, { recursive: true })
    await rm(elsewhere, { recursive: true })
  }
})

test('require gives what import gives', async () => {
  await writeFile(join(folder, 'old.cjs'), `
    const required = require('ldfi-fit')
    import('ldfi-fit').then((imported) => {
      console.log(required.install === imported.install, Object.keys(required).length > 10)
    })`)
  assert.equal((await node('old.cjs')).out.trim(), 'true true')
})

test('the types are those of what is there, and see what is wrong', async () => {
  const exported = Object.keys(await import('../../index.js')).sort()
  const right = `${TYPED}\nexport const all = [${exported.map((each) => `fit.${each}`).join(', ')}]`
  await mkdir(join(folder, 'node_modules', '@types'), { recursive: true })
  await symlink(join(LIBRARIES, '@types', 'node'), join(folder, 'node_modules', '@types', 'node'))
  await symlink(join(LIBRARIES, 'undici-types'), join(folder, 'node_modules', 'undici-types'))
  await writeFile(join(folder, 'right.ts'), `import * as fit from 'ldfi-fit'\n${right}`)
  await writeFile(join(folder, 'wrong.ts'), `import { install } from 'ldfi-fit'\ninstall(17)\n`)
  const tsc = join(LIBRARIES, 'typescript', 'bin', 'tsc')
  const words = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node']
  const check = (file) => node(tsc, ...words, file)
  const [fine, wrong] = await Promise.all([check('right.ts'), check('wrong.ts')])
  assert.equal(fine.code, 0, fine.out)
  assert.match(wrong.out, /wrong\.ts\(2,9\): error TS2345/)
})
