/** Numbers of asks, from 1. An ask is settled when its answer has come, or when it was given up, in any order. */
export class Numbers {
  #last = 0
  #open = new Set()
  /** Up to which one the control plane knows that all are settled. */
  told = 0

  /** Begin an ask, and return its number. */
  next() {
    this.#last += 1
    this.#open.add(this.#last)
    return this.#last
  }

  settle(number) {
    this.#open.delete(number)
  }

  /** Up to which number all are settled. */
  get settled() {
    return Math.min(this.#last + 1, ...this.#open) - 1
  }
}
