/**
 * Allowances: how many devices this edge has treated, and for which it may still do so: fit/allowance.py.
 *
 * A device is counted before its stamped request goes on, and never twice. An experiment whose allowance is
 * used up enrols nobody any more, in either arm; whoever is enrolled stays enrolled.
 */

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
  armed = true
  reported = 0
  wants = false
  told = false // whether the control plane knows that it wants more
  treatment = new Set()
  control = new Set()

  /** @param {number | null} members */
  constructor(members) {
    this.members = members
  }

  get closed() {
    return this.members !== null && this.treatment.size >= this.members
  }

  get size() {
    return this.treatment.size + this.control.size
  }

  get enrolled() {
    return { treatment: this.treatment.size, control: this.control.size, wants: this.wants }
  }

  get urgent() {
    if (!this.armed) return true
    return (this.closed && this.treatment.size !== this.reported) || (this.wants && !this.told)
  }

  allow(members) {
    if (members !== this.members) Object.assign(this, { members, wants: false, told: false })
  }
}

export class Allowances {
  /** @type {Map<string, Enrolment>} */
  #enrolments = new Map()
  #remembered = 0

  /** Take over the rules of a new lease. Those that have left are frozen until reported. */
  renew(rules) {
    const members = new Map(rules.map((rule) => [rule.experiment, rule.members]))
    for (const [experiment, enrolment] of this.#enrolments) {
      enrolment.armed = members.has(experiment)
      if (!enrolment.armed && !enrolment.size) this.#forget(experiment)
    }
    for (const [experiment, limit] of members) {
      const known = this.#enrolments.get(experiment)
      if (known) known.allow(limit)
      else this.#enrolments.set(experiment, new Enrolment(limit))
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
    if (enrolment.closed || this.#remembered >= MAX_DEVICES) {
      enrolment.wants ||= enrolment.closed && arm === 'treatment'
      return false
    }
    enrolment[arm].add(mark)
    this.#remembered += 1
    return true
  }

  /**
   * The distinct devices enrolled, by experiment; urgent ones first, as many as a URL holds.
   * @returns {Map<string, Enrolled>}
   */
  report() {
    const pressing = [...this.#enrolments].sort(([, a], [, b]) => Number(b.urgent) - Number(a.urgent))
    const report = new Map()
    let room = MAX_REPORT
    for (const [experiment, { size, wants, enrolled }] of pressing) {
      if (!size && !wants) continue
      room -= Object.values(written(new Map([[experiment, enrolled]]))).join('').length + 3
      if (room < 0) break
      report.set(experiment, enrolled)
    }
    return report
  }

  /** Forget what had left the lease before a report that the control plane now has. */
  settle(report) {
    for (const [experiment, { treatment, wants }] of report) {
      const enrolment = this.#enrolments.get(experiment)
      if (!enrolment) continue
      Object.assign(enrolment, { reported: treatment, told: wants })
      if (!enrolment.armed) this.#forget(experiment)
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

/** A report as parameters of a URL. */
export function written(report) {
  const counts = [...report]
  const counted = (arm) => counts.filter(([, each]) => each[arm]).map(([name, each]) => `${name}:${each[arm]}`)
  return {
    used: counted('treatment').join(','),
    control: counted('control').join(','),
    wants: counts.filter(([, each]) => each.wants).map(([name]) => name).join(','),
  }
}
