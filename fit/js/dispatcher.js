/** The dispatcher behind Node's own fetch. Node keeps its classes to itself. */

const KEPT = Symbol.for('undici.globalDispatcher.1')

/** The class of that dispatcher, Node's own or what the application has put in its place. */
export function agentOfFetch() {
  void globalThis.Response // makes Node load it
  const { constructor } = globalThis[KEPT] ?? {}
  return constructor?.name === 'Agent' ? constructor : undefined
}
