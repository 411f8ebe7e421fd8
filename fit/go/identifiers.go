package fit

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Which words are identifiers is said in fit/protocol/identifiers.py; this says the same.

const longestWord = 40 // characters above which a word with a digit is no word

var (
	identifierForms = regexp.MustCompile(`^(?:` + strings.Join([]string{
		`[+-]?\d[\d.,:_+-]*`,                          // 17, 3.14, 1-20, 2026-11-21
		`[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}`, // uuid
		`[A-Z0-9]{26}`,                                // ulid
		`[^@]+@[^@]+`,                                 // e-mail address
		`[A-Za-z]{0,8}[-_.]?\d{3,}`,                   // tt0111161, user-1234
		`\d{5,}[-_][^\n]+`, `[^\n]+[-_]\d{5,}`,        // a number before words, or behind them
		`[^\n]+[-_][0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}`,
	}, "|") + `)$`)
	hexadecimal   = regexp.MustCompile(`^[0-9a-f]{7,}$`)
	token         = regexp.MustCompile(`^[\w.=-]{16,}$`)
	qualifiedName = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)
	versionWord   = regexp.MustCompile(`^v\d+$`)
)

func isIdentifier(segment string) bool {
	if escape.MatchString(segment) {
		return true
	}
	if !qualifiedName.MatchString(segment) {
		return isWordOfOne(segment)
	}
	for _, part := range strings.Split(segment, ".") {
		if !versionWord.MatchString(part) && isWordOfOne(part) {
			return true
		}
	}
	return false
}

func isWordOfOne(word string) bool {
	if identifierForms.MatchString(word) {
		return true
	}
	digits := countDigits(word)
	if digits >= 1 && utf8.RuneCountInString(word) > longestWord || digits >= 3 && token.MatchString(word) {
		return true
	}
	if hexadecimal.MatchString(word) && (digits >= 2 && digits < len(word) || digits >= 1 && len(word) >= 8) {
		return true
	}
	return isDrawn(word) || endsInOne(word)
}

// endsInOne tells whether words lead up to an identifier, as in a slug.
func endsInOne(word string) bool {
	at := strings.LastIndexAny(word, "-_")
	if at < 1 {
		return false
	}
	tail := word[at+1:]
	digits := countDigits(tail)
	return hexadecimal.MatchString(tail) && digits >= 2 && digits < len(tail) || isDrawn(tail)
}

func countDigits(text string) int {
	digits := 0
	for i := range len(text) {
		if text[i] >= '0' && text[i] <= '9' {
			digits++
		}
	}
	return digits
}

type kindOfLetter int

const (
	nothing kindOfLetter = iota
	digit
	small
	capital
	mark
)

// isDrawn tells whether letters and digits look as if they were drawn by lot.
func isDrawn(word string) bool {
	size := len(word)
	if size < 8 {
		return false
	}
	var counts [mark + 1]int
	within, changes, run, longestRun := 0, 0, 0, 0
	before := nothing
	for i := range size {
		kind := kindOf(word[i])
		if kind == nothing {
			return false
		}
		counts[kind]++
		letter := kind == small || kind == capital
		if before == digit && letter {
			within++
		}
		if before == digit && letter || kind == digit && (before == small || before == capital) ||
			before == small && kind == capital {
			changes++
		}
		run++
		if kind != small {
			run = 0
		}
		longestRun = max(longestRun, run)
		before = kind
	}
	switch {
	case within == 0 || counts[mark] > 0 && size < 16:
		return false
	case counts[small] > 0 && counts[capital] > 0:
		shortest := 4
		if size >= 16 {
			shortest = 6
		}
		return size >= 10 && longestRun < shortest && (within >= 2 || size >= 16 && 3*changes >= size)
	case counts[mark] > 0:
		return false
	case counts[capital] > 0:
		return size >= 10 || within >= 2
	}
	return within >= 2 && (size >= 10 && counts[digit] >= 3 || size >= 20)
}

func kindOf(letter byte) kindOfLetter {
	switch {
	case letter >= '0' && letter <= '9':
		return digit
	case letter >= 'a' && letter <= 'z':
		return small
	case letter >= 'A' && letter <= 'Z':
		return capital
	case letter == '-' || letter == '_':
		return mark
	}
	return nothing
}
