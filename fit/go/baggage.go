package fit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// FindEntry reads our entry in a raw baggage header, less its properties. Where it occurs more than once
// none is obeyed: which of them counts is not defined. An entry is ours by its decoded name, as an SDK
// further in would see it.
func FindEntry(header string) (value string, found bool) {
	count := 0
	for _, member := range strings.Split(header, ",") {
		if !isOurs(member) {
			continue
		}
		if count++; count > 1 {
			return "", false
		}
		value = valueOf(member)
	}
	return value, count == 1
}

// Entries takes a raw baggage header apart, as edges do: the values of our entries, less their
// properties, and the header without them.
func Entries(header string) (values []string, others string) {
	var kept []string
	for _, member := range strings.Split(header, ",") {
		if isOurs(member) {
			values = append(values, valueOf(member))
		} else {
			kept = append(kept, member)
		}
	}
	return values, strings.Join(kept, ",")
}

func valueOf(member string) string {
	member, _, _ = strings.Cut(member, ";")
	_, value, _ := strings.Cut(member, "=")
	return trimmed(value)
}

// isOurs is asked of each entry of every request, so it looks at each letter of the name just once.
func isOurs(member string) bool {
	end, encoded := 0, false
	for ; end < len(member) && member[end] != '=' && member[end] != ';'; end++ {
		encoded = encoded || member[end] == '%' || member[end] == '+'
	}
	name := member[:end]
	if encoded {
		name = leniently(name)
	}
	name = trimmed(name)
	return len(name) == len(Entry) && strings.EqualFold(name, Entry)
}

// leniently decodes percent-encoding and leaves what is none, as SDKs do.
func leniently(name string) string {
	name = strings.ReplaceAll(name, "+", " ")
	return escape.ReplaceAllStringFunc(name, func(hex string) string {
		return string([]byte{nibble(hex[1])<<4 | nibble(hex[2])})
	})
}

func nibble(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// trimmed takes off what any SDK takes for white space. A header is bytes: what is no UTF-8 some read as
// Latin-1.
func trimmed(text string) string {
	for text != "" {
		first, size := utf8.DecodeRuneInString(text)
		if !isSpace(first, text[0]) {
			break
		}
		text = text[size:]
	}
	for text != "" {
		last, size := utf8.DecodeLastRuneInString(text)
		if !isSpace(last, text[len(text)-1]) {
			break
		}
		text = text[:len(text)-size]
	}
	return text
}

func isSpace(letter rune, first byte) bool {
	if letter == utf8.RuneError {
		letter = rune(first)
	}
	return unicode.IsSpace(letter) || (letter >= 0x1c && letter <= 0x1f)
}
