package edge

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const longestAgent = 512 // characters; whatever follows is a stranger's text

// devices is the table of fit/protocol/device_type.py.
var devices = []struct {
	kind  string
	words *regexp.Regexp
}{
	{"bot", words(`bot\b|bot/|crawl|spider|slurp|headless|lighthouse|monitor|^curl/|^wget/`)},
	{"console", words(`playstation|xbox|nintendo`)},
	{"tv", words(`smart-?tv|smarttv|\btv\b|googletv|apple ?tv|appletv|android tv|hbbtv|netcast` +
		`|web0s|webos|tizen|bravia|roku|\baft[a-z]|crkey|chromecast|viera|aquos`)},
	{"tablet", words(`ipad|tablet|kindle|silk/|playbook`)},
	{"phone", words(`iphone|ipod|\bmobile\b|mobile/|windows phone|opera mini|cfnetwork|okhttp|dalvik`)},
	{"desktop", words(`windows nt|macintosh|x11|cros |linux x86_64|electron`)},
}

var (
	runsTizen     = words(`tizen|samsung`)
	androidMobile = words(`^android.*\bmobile\b`)
)

func words(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + pattern) }

// deviceType names the kind of device a request comes from, by its User-Agent.
func deviceType(agent string) string {
	text := asciiWords(cut(agent, longestAgent))
	if runsTizen.MatchString(text) && strings.Contains(text, "Mobile") {
		return "phone" // phones and watches run Tizen, too
	}
	for _, each := range devices {
		if each.words.MatchString(text) || (each.kind == "tablet" && isAndroidTablet(text)) {
			return each.kind
		}
	}
	return "other"
}

// isAndroidTablet tells whether "android" stands there, and no word "mobile" behind it.
func isAndroidTablet(text string) bool {
	at := strings.LastIndex(strings.ToLower(text), "android")
	return at >= 0 && !androidMobile.MatchString(text[at:])
}

// asciiWords puts "_" for letters of other alphabets: \b knows ASCII only.
func asciiWords(text string) string {
	return strings.Map(func(letter rune) rune {
		if letter >= utf8.RuneSelf && (unicode.IsLetter(letter) || unicode.IsNumber(letter)) {
			return '_'
		}
		return letter
	}, text)
}

// cut returns the first characters of a text.
func cut(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	for at := range text {
		if longest == 0 {
			return text[:at]
		}
		longest--
	}
	return text
}
