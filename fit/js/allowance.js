/**
 * Allowances: how many devices this edge has treated, and for which it may still do so: fit/protocol/allowance.py.
 *
 * A device is counted before its stamped request goes on, and never twice. An experiment whose allowance is
 * used up enrols nobody any more, in either arm, unless the device is asked for; whoever is enrolled stays enrolled.
 */

import { Numbers } from './numbers.js'

/** Enrolled devices that one process remembers, over all experiments. */
export const MAX_DEVICES = 200_000

/** Characters of a report; it travels in a URL. */
export const MAX_REPORT = 4000

/**
 * How many distinct devices of one experiment are enrolled here, by arm; `wants`: whether one was turned away
 * that would have been treated.
 * @typedef {{treatment: number, control: number, wants: boolean}} Enrolled
 */

/** The devices of one experiment, by mark. */
class Enrolment {
  /**
   * What a lease has given; null is no limit, and what a stream offers is nobody's allowance.
   * @type {number | null | undefined}
   */
  members = undefined
  armed = true
  wants = false
  told = false // whether the control plane knows that it wants more
  frozen = false // whether a report was written after it had left the lease
  reported = { treatment: 0, control: 0 }
  treatment = new Set()
  control = new Set()

  get given() {
    return this.members !== undefined
  }

  get closed() {
    return this.given && this.members !== null && this.treatment.size >= this.members
  }

  get size() {
    return this.treatment.size + this.control.size
  }

  get enrolled() {
    return { treatment: this.treatment.size, control: this.control.size, wants: this.wants }
  }

  /** Whether a report says all that there is to say. */
  get isTold() {
    return this.treatment.size === this.reported.treatment && this.control.size === this.reported.control
  }

  /** Whether the control plane should hear of it at once. Of whom it has granted it knows. */
  get urgent() {
    if (!this.armed) return true
    const usedUp = this.closed && this.members > 0
    return (usedUp && this.treatment.size !== this.reported.treatment) || (this.wants && !this.told)
  }

  allow(members) {
    if (members !== this.members) Object.assign(this, { members, wants: false, told: false })
  }
}

export class Allowances {
  asks = new Numbers()
  /** Devices that nobody was granted in time, in all. */
  late = 0
  /** @type {Map<string, Enrolment>} */
  #enrolments = new Map()
  #remembered = 0

  /** Take over the rules of a new lease. Those that have left are frozen until reported. */
  renew(rules) {
    this.#take(rules, (enrolment, members) => enrolment.allow(members))
  }

  /**
   * Take over rules that nobody may act upon yet. With an allowance of none devices can be asked for; a larger one
   * has to come with a lease.
   */
  offer(rules) {
    this.#take(rules, (enrolment, members) => {
      if (!enrolment.given && members === 0) enrolment.allow(members)
    })
  }

  #take(rules, allow) {
    const members = new Map(rules.map((rule) => [rule.experiment, rule.members]))
    for (const [experiment, enrolment] of this.#enrolments) {
      enrolment.armed = members.has(experiment)
      if (!enrolment.armed && !enrolment.size) this.#forget(experiment)
    }
    for (const [experiment, limit] of members) {
      const enrolment = this.#enrolments.get(experiment) ?? new Enrolment()
      this.#enrolments.set(experiment, enrolment)
      allow(enrolment, limit)
    }
  }

  /** Whether a device has been admitted already. */
  knows(experiment, arm, mark) {
    return this.#enrolments.get(experiment)?.[arm].has(mark) ?? false
  }

  /** Whether a device may be stamped; it is counted when it is admitted for the first time. */
  admit(experiment, arm, mark) {
    const enrolment = this.#enrolments.get(experiment)
    if (!enrolment?.armed) return false
    if (enrolment[arm].has(mark)) return true
    if (!enrolment.given || enrolment.closed || this.#remembered >= MAX_DEVICES) {
      enrolment.wants ||= enrolment.closed && arm === 'treatment'
      return false
    }
    this.#enrol(enrolment, arm, mark)
    return true
  }

  /** Whether a device can only be enrolled if it is asked for. */
  usedUp(experiment, arm, mark) {
    const enrolment = this.#enrolments.get(experiment)
    if (!enrolment?.armed || enrolment[arm].has(mark)) return false
    return enrolment.closed && this.#remembered < MAX_DEVICES
  }

  /** Enrol a device that was granted; whether it is enrolled. */
  enrol(experiment, arm, mark) {
    const enrolment = this.#enrolments.get(experiment)
    if (!enrolment?.armed || this.#remembered >= MAX_DEVICES) return false
    this.#enrol(enrolment, arm, mark)
    return true
  }

  #enrol(enrolment, arm, mark) {
    if (enrolment[arm].has(mark)) return
    enrolment[arm].add(mark)
    this.#remembered += 1
  }

  /** Whether the control plane has to hear of anything: of devices that are enrolled, or of asks. */
  get news() {
    return this.asks.settled > this.asks.told || [...this.#enrolments.values()].some(({ size }) => size > 0)
  }

  /**
   * The distinct devices enrolled, by experiment; urgent ones first, as many as a URL holds. `asked`: up to which
   * number all asks are settled, and nobody whom they enrolled is left out.
   * @returns {{counts: Map<string, Enrolled>, asked: number, late: number}}
   */
  report() {
    const pressing = [...this.#enrolments].sort(([, a], [, b]) => Number(b.urgent) - Number(a.urgent))
    const report = { counts: new Map(), asked: this.asks.settled, late: this.late }
    let room = MAX_REPORT
    for (const [experiment, enrolment] of pressing) {
      const { size, wants, enrolled } = enrolment
      enrolment.frozen = !enrolment.armed
      if (!size && !wants) continue
      room -= Object.values(written(new Map([[experiment, enrolled]]))).join('').length + 3
      if (room >= 0) report.counts.set(experiment, enrolled)
      else if (!enrolment.isTold) report.asked = this.asks.told
    }
    return report
  }

  /** Forget what had left the lease before a report that the control plane now has. */
  settle({ counts, asked }) {
    this.asks.told = Math.max(this.asks.told, asked)
    for (const [experiment, { treatment, control, wants }] of counts) {
      const enrolment = this.#enrolments.get(experiment)
      if (!enrolment) continue
      Object.assign(enrolment, { reported: { treatment, control }, told: wants })
      if (enrolment.frozen && !enrolment.armed) this.#forget(experiment)
    }
  }

  /** Whether there is something the control plane should hear at once. */
  get urgent() {
    return [...this.#enrolments.values()].some((enrolment) => enrolment.urgent)
  }

  #forget(experiment) {
    this.#remembered -= this.#enrolments.get(experiment).size
    this.#enrolments.delete(experiment)
  }
}

/**
 * Counts as parameters of a URL.
 * @param {Map<string, Enrolled>} enrolled
 */
export function written(enrolled) {
  const counts = [...enrolled]
  const counted = (arm) => counts.filter(([, each]) => each[arm]).map(([name, each]) => `${name}:${each[arm]}`)
  return {
    used: counted('treatment').join(','),
    control: counted('control').join(','),
    wants: counts.filter(([, each]) => each.wants).map(([name]) => name).join(','),
  }
}
