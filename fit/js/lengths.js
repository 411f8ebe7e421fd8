/** Lengths that are drawn by lot, as fit/protocol/lengths.py draws them: `0.5..2`, `p50=0.8..p99=3`, in seconds; `2` is
 * always that. */

import { blake2b } from './blake2b.js'

const NUMBER = '((?:0|[1-9][0-9]{0,3})(?:\\.[0-9]{0,2}[1-9])?)'
const EVEN = new RegExp(`^${NUMBER}\\.\\.${NUMBER}$`)
const LOGNORMAL = new RegExp(`^p50=${NUMBER}\\.\\.p99=${NUMBER}$`)
const ONE = new RegExp(`^${NUMBER}$`)
const SHORTEST = 0.001
const BITS = 53

/**
 * The distribution that a text names, or one length: the length below which a share of all lengths is. Undefined
 * for a text that names none.
 * @param {string} text
 * @returns {((chance: number) => number) | undefined}
 */
export function lengthsOf(text) {
  if (ONE.test(text) && Number(text) >= SHORTEST) return () => Number(text)
  for (const [form, made, least] of [[EVEN, even, 0], [LOGNORMAL, logNormal, SHORTEST]]) {
    const found = form.exec(text)
    if (!found) continue
    const [shorter, longer] = found.slice(1).map(Number)
    if (least <= shorter && shorter < longer) return made(shorter, longer)
  }
  return undefined
}

/**
 * Draw a length, in seconds: always the same one for a lot.
 * @param {string} text @param {string} lot
 */
export function drawn(text, lot) {
  return lengthsOf(text)(chance(lot))
}

/** A number above 0 and below 1. */
function chance(lot) {
  const bits = blake2b(lot, 8).readBigUInt64BE() >> BigInt(64 - BITS)
  return (Number(bits) + 0.5) / 2 ** BITS
}

function even(shortest, longest) {
  return (chance) => shortest + chance * (longest - shortest)
}

function logNormal(median, longest) {
  return (chance) => median * Math.exp((quantile(chance) / quantile(0.99)) * Math.log(longest / median))
}

/**
 * The quantile of the standard normal distribution, as M. J. Wichura approximates it: Algorithm AS 241
 * (PPND16), Applied Statistics 37 (3), 1988.
 */
function quantile(p) {
  const q = p - 0.5
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q
    return (polynomial(NEAR[0], r) * q) / polynomial(NEAR[1], r)
  }
  const r = Math.sqrt(-Math.log(q <= 0 ? p : 1 - p))
  const [[above, below], less] = r <= 5 ? [MIDDLE, 1.6] : [FAR, 5]
  const x = polynomial(above, r - less) / polynomial(below, r - less)
  return q < 0 ? -x : x
}

/** By the coefficient of the highest power first. */
function polynomial(coefficients, r) {
  return coefficients.reduce((sum, each) => sum * r + each)
}

const NEAR = [
  [
    2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
    13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
  ],
  [
    5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
    5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1,
  ],
]
const MIDDLE = [
  [
    7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
    3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734,
  ],
  [
    1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
    0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1,
  ],
]
const FAR = [
  [
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
    0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
    6.6579046435011037772,
  ],
  [
    2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
    7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1,
  ],
]
