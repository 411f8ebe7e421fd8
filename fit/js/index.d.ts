import type { IncomingMessage, ServerResponse } from 'node:http'

/** What a failure context asks of one point. `first`: only so many calls are hit; 0 is every call. */
export interface Injection {
  readonly kind: string
  readonly delayMs: number
  readonly first: number
}

/** A verified failure context. `expires` is in Unix seconds, `injections` by hash of point. */
export interface FailureContext {
  readonly experiment: string
  readonly arm: 'treatment' | 'control'
  readonly expires: number
  readonly injections: ReadonlyMap<string, Injection>
}

/** What is published on the channel `fit.fault` of node:diagnostics_channel. */
export interface FaultMessage {
  readonly point: string
  readonly kind: string
  readonly experiment: string
  readonly outcome: 'fired' | 'would_fire' | 'let_through' | 'outlived' | 'expired'
}

/** Middleware of Express, Connect, or any server of (request, response, next). */
export type Middleware = (
  request: Pick<IncomingMessage, 'headers'> & Partial<Pick<IncomingMessage, 'rawHeaders' | 'method' | 'url'>>,
  response: unknown,
  next: () => void,
) => void

/**
 * Make the calls of this process injection points. Returns whether injection is possible at all:
 * without FIT_KEYS, or with keys that cannot be read, nothing is touched.
 */
export function install(service?: string): boolean

/** Make a request's verified failure context known to all that runs in its name. */
export const failureContext: Middleware

/**
 * For a service that is itself the edge: takes out every failure context from outside, but for one that
 * an engineer has signed for this very device (header `x-device-id`), and stamps requests by the rules of the
 * service at LDFI_URL, which it asks with LDFI_TOKEN from the first request on. Without the two it stamps nothing.
 */
export const edge: Middleware

/** A hook for Fastify: `app.addHook('onRequest', forFastify(edge))`. */
export function forFastify(
  middleware: Middleware,
): (request: { raw: IncomingMessage }, reply: { raw: ServerResponse }, done: () => void) => void

/** Middleware for Koa: `app.use(forKoa(edge))`. */
export function forKoa(
  middleware: Middleware,
): (context: { req: IncomingMessage; res: ServerResponse }, next: () => Promise<unknown>) => Promise<unknown>

/** A handler of node:http with middleware before it: `createServer(before([edge, failureContext], handler))`. */
export function before<Request extends IncomingMessage, Response extends ServerResponse>(
  middleware: readonly Middleware[],
  handler: (request: Request, response: Response) => unknown,
): (request: Request, response: Response) => void

/**
 * A handler of kafkajs for one message: `consumer.run({ eachMessage: forKafkajs(handler) })`. Its calls are made
 * under the failure context that the message's headers carry. In `eachBatch`, call it for each message.
 */
export function forKafkajs<
  Payload extends { message: { headers?: Record<string, Buffer | string | (Buffer | string)[] | undefined> } },
  Answer,
>(handler: (payload: Payload) => Answer): (payload: Payload) => Answer

/** The verified failure context of the request being served, if it carries one that still holds. */
export function current(): FailureContext | undefined

/** The experiment that stands for replaying a scenario on this device. */
export function scenarioOf(device: string): string

/** The keys that sign failure contexts. */
export class Keys {
  constructor(secrets: Map<string, string>)
  get ids(): string[]
  get signingId(): string
  static parse(text: string): Keys
  sign(payload: string): string
  verify(payload: string, id: string, mac: string): boolean
}

/** FIT_KEYS cannot be read. */
export class KeyFormatError extends Error {}

/** A failure context that must not be obeyed. */
export class ContextError extends Error {
  constructor(reason: 'malformed' | 'forged' | 'expired', message: string)
  reason: 'malformed' | 'forged' | 'expired'
}

/** Verify and read a failure context. `now` is in Unix seconds. Throws ContextError. */
export function decode(keys: Keys, value: string, now: number): FailureContext

/** Name an outgoing HTTP call, for instance `api>http:GET:ratings/titles/*`. */
export function httpPoint(
  caller: string, method: string, host: string, port: number | null, path: string, template?: string,
): string

/** Name a remote procedure call, for instance `api>rpc:Get:prices/shop.Prices`. */
export function rpcPoint(caller: string, method: string, peer?: string): string

/** Name a statement or a command, for instance `bookmarks>db:SELECT:recordsdb/marks`. */
export function databasePoint(caller: string, statement: string, peer: string): string

/** Name a message that is sent, for instance `api>message:send:kafka/plays`. */
export function messagePoint(
  caller: string, operation: string, system: string, destination: string,
): string

/** Eight characters that stand for a point's name. */
export function pointHash(name: string): string
