package edge

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const (
	operationHeader = "x-apollo-operation-name"

	maxValue      = 24 // characters
	maxParameters = 20
	maxPath       = 2048 // characters of a path that are looked at; whatever follows is a stranger's text
	maxQuery      = 8192
)

// arrived is a request as it arrives: its path as it was sent, the names of its headers in small letters, all
// of it as text.
type arrived struct {
	method, path, query string
	headers             iter.Seq2[string, string]
}

// features reads what is known of a request, as fit/protocol/features.py does of one whose body is not read: then a
// body that may tell more is "unread". Wanted are features by headers, cookies and baggage.
func (a arrived) features(wanted map[string]bool) features {
	found := features{"method": strings.ToUpper(a.method), "path": fit.TemplatePath(cut(a.path, maxPath))}
	found.addQuery(cut(a.query, maxQuery))
	found.addHeaders(a.headers, wanted)
	method := found["method"]
	for name, value := range a.headers {
		if name == "content-type" && strings.Contains(value, "json") && method != "GET" && method != "HEAD" {
			found["unread"] = "body"
		}
	}
	return found
}

// chosen returns those features that are wanted of headers, cookies and entries of the baggage.
func (a arrived) chosen(wanted map[string]bool) features {
	found := features{}
	found.addHeaders(a.headers, wanted)
	for name := range found {
		if !wanted[name] {
			delete(found, name)
		}
	}
	return found
}

type pair struct{ name, value string }

// said are parameters whose values say nothing beyond what was read in them.
var said = map[string][]string{
	"falcor":  {"path", "paths"},
	"graphql": {"query", "operationName", "variables", "extensions"},
}

func (f features) addQuery(query string) {
	var pairs []pair
	for _, part := range strings.Split(strings.ReplaceAll(query, "+", " "), "&") {
		if part == "" {
			continue
		}
		if len(pairs) == maxParameters {
			break
		}
		name, value, _ := strings.Cut(part, "=")
		pairs = append(pairs, pair{unquoted(name), unquoted(value)})
	}
	f.addAsked(pairs)
	values := map[string][]string{}
	for _, each := range pairs {
		if slices.Contains(said[f["protocol"]], each.name) {
			continue
		}
		parameter := "query." + templateValue(each.name)
		values[parameter] = append(values[parameter], templateValue(each.value))
	}
	for parameter, each := range values {
		f[parameter] = together(each)
	}
}

// together writes all values of a repeated parameter as one.
func together(values []string) string {
	slices.Sort(values)
	joined := strings.Join(slices.Compact(values), ",")
	if utf8.RuneCountInString(joined) > maxValue {
		return "*"
	}
	return joined
}

func (f features) addHeaders(headers iter.Seq2[string, string], wanted map[string]bool) {
	for name, value := range headers {
		if wanted["header."+name] {
			f["header."+name] = cut(value, maxValue)
		}
		switch name {
		case "user-agent":
			f["device"] = deviceType(value)
		case operationHeader:
			f["protocol"], f["graphql.operation"] = "graphql", wordOf(value)
		case "cookie":
			f.addEntries("cookie.", strings.Split(value, ";"), wanted)
		case "baggage":
			f.addEntries("baggage.", strings.Split(value, ","), wanted)
		}
	}
}

func (f features) addEntries(kind string, entries []string, wanted map[string]bool) {
	for _, entry := range entries {
		entry, _, _ = strings.Cut(entry, ";")
		name, value, _ := strings.Cut(entry, "=")
		if feature := kind + strings.TrimSpace(name); wanted[feature] {
			f[feature] = templateValue(unquoted(strings.TrimSpace(value)))
		}
	}
}

func templateValue(value string) string {
	if utf8.RuneCountInString(value) > maxValue || isIdentifier(value) {
		return "*"
	}
	return value
}

// isIdentifier tells whether a text would be wildcarded as a segment of a path.
func isIdentifier(text string) bool {
	return fit.TemplatePath("/"+strings.ReplaceAll(text, "/", "%2F")) == "/*"
}

// unquoted takes percent-encoding off as Python does: of what is broken it keeps what it can, and what is no
// UTF-8 becomes U+FFFD, a character for each maximal part of one.
func unquoted(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var whole strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, func(letter rune) bool { return letter >= utf8.RuneSelf })
		switch {
		case end == 0:
			_, size := utf8.DecodeRuneInString(text)
			whole.WriteString(text[:size])
			text = text[size:]
			continue
		case end < 0:
			end = len(text)
		}
		whole.WriteString(replaced(unescaped(text[:end])))
		text = text[end:]
	}
	return whole.String()
}

func unescaped(ascii string) []byte {
	var plain []byte
	for i := 0; i < len(ascii); i++ {
		if ascii[i] == '%' && i+2 < len(ascii) {
			if high, low := nibble(ascii[i+1]), nibble(ascii[i+2]); high >= 0 && low >= 0 {
				plain = append(plain, byte(high<<4|low))
				i += 2
				continue
			}
		}
		plain = append(plain, ascii[i])
	}
	return plain
}

// replaced decodes UTF-8, with U+FFFD for each maximal part of what is none.
func replaced(bytes []byte) string {
	var text strings.Builder
	for len(bytes) > 0 {
		letter, size := utf8.DecodeRune(bytes)
		for letter == utf8.RuneError && size < len(bytes) && !utf8.FullRune(bytes[:size+1]) {
			size++
		}
		text.WriteRune(letter)
		bytes = bytes[size:]
	}
	return text.String()
}

func nibble(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
