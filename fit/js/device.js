/** The kind of device a request comes from, by its `User-Agent`: the table of fit/protocol/device_type.py. */

const LONGEST = 512
/** The edge of a word, of any language: `\b` knows English only. */
const EDGE = '(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))'
const TABLE = Object.entries({
  bot: 'bot\\b|bot/|crawl|spider|slurp|headless|lighthouse|monitor|^curl/|^wget/',
  console: 'playstation|xbox|nintendo',
  tv: 'smart-?tv|smarttv|\\btv\\b|googletv|apple ?tv|appletv|android tv|hbbtv|netcast' +
    '|web0s|webos|tizen|bravia|roku|\\baft[a-z]|crkey|chromecast|viera|aquos',
  tablet: 'ipad|tablet|kindle|silk/|playbook|android(?!.*\\bmobile\\b)',
  phone: 'iphone|ipod|\\bmobile\\b|mobile/|windows phone|opera mini|cfnetwork|okhttp|dalvik',
  desktop: 'windows nt|macintosh|x11|cros |linux x86_64|electron',
}).map(([device, words]) => [device, new RegExp(words.replaceAll('\\b', EDGE), 'iu')])

/** @param {string} agent */
export function deviceType(agent) {
  const text = agent.slice(0, LONGEST)
  if (/tizen|samsung/i.test(text) && text.includes('Mobile')) return 'phone' // they run Tizen, too
  return TABLE.find(([, words]) => words.test(text))?.[0] ?? 'other'
}
