package fit

import "strings"

// FindEntry reads our entry in a raw baggage header, less its properties. Where it occurs more than once
// none is obeyed: which of them counts is not defined. An entry is ours by its decoded name, as an SDK
// further in would see it.
func FindEntry(header string) (value string, found bool) {
	count := 0
	for member := range strings.SplitSeq(header, ",") {
		if !isOurs(member) {
			continue
		}
		if count++; count > 1 {
			return "", false
		}
		member, _, _ = strings.Cut(member, ";")
		_, value, _ = strings.Cut(member, "=")
		value = strings.TrimSpace(value)
	}
	return value, count == 1
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
	name = strings.TrimSpace(name)
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
