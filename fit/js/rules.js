/**
 * Rules: what an edge has been told to do, and the lease on which it was told. Read as fit/protocol/rules.py reads
 * them, all or nothing.
 */

import { armOf, bitsOf, claimOf } from './allocation.js'
import { faultOf } from './faults.js'
import { draws } from './kinds.js'
import { holds, predicateOf } from './predicate.js'

/** A longer lease is cut to this: it is how long injection may outlive the control plane. */
export const MAX_LEASE_SECONDS = 60

const EXPERIMENT = /^[A-Za-z0-9_-]{1,64}$/
const MAX_VERSION = 64
const MAX_DELAY_MS = 9_999_999
const MAX_PATIENCE_SECONDS = 120

/** An answer of the control plane that is not understood. */
export class MalformedRules extends Error {}

/**
 * One armed experiment. `members`: how many distinct devices this edge may treat, in all; null is no limit.
 * `draws`: a length is drawn anew for each request. `patience`: seconds for which a context holds at least.
 * @typedef {{experiment: string, salt: string, predicate: import('./predicate.js').Condition[],
 *   claim: import('./allocation.js').Claim, faults: import('./faults.js').Fault[], delayMs: number,
 *   members: number | null, yieldsTo: import('./allocation.js').Claim[], draws: boolean, patience: number}} Rule
 */

/**
 * Rules, how long they hold in seconds, whether the control plane can be asked for one device more, and the features
 * that the rules ask for. The empty lease arms nothing.
 */
export class Lease {
  /** @param {Rule[]} rules @param {number} seconds @param {string} version */
  constructor(rules = [], seconds = 0, version = '', asks = false) {
    this.rules = rules
    this.seconds = seconds
    this.version = version
    this.asks = asks
    this.wanted = new Set(rules.flatMap(({ predicate }) => predicate.map(({ feature }) => feature)))
  }

  /** Which start of the service a version is of; versions are EPOCH-NUMBER. */
  get epoch() {
    return this.version.replace(/-[0-9]+$/, '')
  }

  /** Whether devices may be treated without being asked for. */
  get allots() {
    return this.rules.some(({ members }) => members !== 0)
  }

  /**
   * The rules that claim a device, each with the arm, whatever the request asks for. There are several only
   * where it is in control of all of them; where they do not yield as they should, the first one has it.
   * @param {bigint} mark
   * @returns {[Rule, 'treatment' | 'control'][]}
   */
  claims(mark) {
    const bits = bitsOf(mark)
    const found = []
    for (const rule of this.rules) {
      const arm = armOf(rule.claim, bits)
      if (!arm || !keeps(rule, bits, arm) || (found.length && arm === 'treatment')) continue
      found.push([rule, arm])
      if (arm === 'treatment') break
    }
    return found
  }
}

/**
 * Whether rules are older than others, as far as that can be told.
 * @param {Lease} lease @param {Lease} than
 */
export function precedes(lease, than) {
  const number = ({ version, epoch }) => Number(version.slice(epoch.length + 1))
  return lease.epoch === than.epoch && number(lease) < number(than)
}

/**
 * The first of these claims whose class the request is of.
 * @param {[Rule, 'treatment' | 'control'][]} claims
 * @param {Map<string, string>} features
 */
export function chosenOf(claims, features) {
  return claims.find(([{ predicate }]) => holds(predicate, features))
}

/** Whether those that a rule yields to leave it a device that falls in this arm. */
function keeps({ yieldsTo }, bits, arm) {
  return yieldsTo.every((claim) => {
    const theirs = armOf(claim, bits)
    return theirs !== 'treatment' && !(theirs === 'control' && arm === 'treatment')
  })
}

/**
 * Read the control plane's answer.
 * @param {string} text
 * @returns {Lease}
 * @throws {MalformedRules} where any part is not understood
 */
export function leaseOf(text) {
  let document
  try {
    document = JSON.parse(text)
  } catch (error) {
    throw new MalformedRules(`rules not understood: ${error.message}`)
  }
  check(isObject(document) && Array.isArray(document.rules), 'rules is not a list')
  const rules = document.rules.map(ruleOf)
  const { version, lease_seconds: seconds, asks = false } = document
  check(isNumber(seconds, Infinity), 'lease_seconds')
  check(typeof version === 'string' && [...version].length <= MAX_VERSION, 'version')
  check(new Set(rules.map(({ experiment }) => experiment)).size === rules.length, 'two of one experiment')
  check(typeof asks === 'boolean', 'asks')
  return new Lease(rules, Math.min(seconds, MAX_LEASE_SECONDS), version, asks)
}

function ruleOf(data) {
  check(isObject(data), 'a rule')
  const { experiment, predicate, faults, delay_ms: delayMs, members = null, patience = 0 } = data
  check(typeof experiment === 'string' && EXPERIMENT.test(experiment), 'experiment')
  check(Array.isArray(predicate) && predicate.every(isObject), 'predicate')
  check(Array.isArray(faults) && faults.every((each) => typeof each === 'string'), 'faults')
  check(isCount(delayMs, MAX_DELAY_MS), 'delay_ms')
  check(isNumber(patience, MAX_PATIENCE_SECONDS), 'patience')
  check(members === null || isCount(members, Infinity), 'members')
  const named = faults.map(faultOf)
  named.forEach((each, at) => check(each, `${faults[at].slice(0, 80)} is not a fault; write KIND@POINT`))
  const yieldsTo = data.yields_to ?? []
  check(Array.isArray(yieldsTo), 'yields_to')
  return {
    experiment,
    salt: data.salt,
    predicate: conditionsOf(predicate),
    claim: sharesOf(data),
    faults: named,
    delayMs,
    members,
    yieldsTo: yieldsTo.map(sharesOf),
    draws: named.some(({ kind }) => draws(kind)),
    patience,
  }
}

function conditionsOf(data) {
  try {
    return predicateOf(data)
  } catch (error) {
    throw new MalformedRules(`rules not understood: ${error.message}`)
  }
}

function sharesOf(data) {
  check(isObject(data) && typeof data.salt === 'string', 'salt')
  const { salt, treatment, control } = data
  check(isNumber(treatment, 1) && isNumber(control, 1) && treatment + control <= 1 + 1e-9, 'shares')
  return claimOf(salt, treatment, control)
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNumber(value, largest) {
  return typeof value === 'number' && value >= 0 && value <= largest
}

function isCount(value, largest) {
  return Number.isInteger(value) && isNumber(value, largest)
}

function check(understood, what) {
  if (!understood) throw new MalformedRules(`rules not understood: ${what}`)
}
