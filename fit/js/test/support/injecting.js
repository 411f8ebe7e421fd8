/** This process as a service that is injected into, called `node`. */

import { subscribe } from 'node:diagnostics_channel'

import { install } from '../../index.js'
import { FIT_KEYS } from './sign.js'

/** @param {(said: string) => void} hear is told what became of each fault, for instance `fired error` */
export function injecting(hear) {
  process.env.FIT_KEYS = FIT_KEYS
  install('node')
  subscribe('fit.fault', ({ outcome, kind }) => hear(`${outcome} ${kind}`))
}
