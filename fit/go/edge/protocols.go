package edge

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxPaths    = 50
	maxPrefixes = 32
	deepest     = 5 // keys of a path that are looked at
	maxWord     = 40
	maxHash     = 12
	maxFields   = 16
	maxDocument = 8192 // characters
)

var (
	graphqlName  = regexp.MustCompile(`^[_A-Za-z][_0-9A-Za-z]*$`)
	graphqlToken = regexp.MustCompile(strings.Join([]string{
		`#[^\n]*`, `"""(?:[^"\\]|\\.|""?[^"\\]|""?\\.)*"""`, `"(?:[^"\\\n]|\\.)*"`,
		`\.\.\.`, `[_A-Za-z][_0-9A-Za-z]*`, `[{}()\[\]:@$!=|&]`,
	}, "|"))
	operationTypes = []string{"query", "mutation", "subscription"}
)

// wordOf keeps a word that looks like no identifier; "*" for any other.
func wordOf(text string) string {
	if utf8.RuneCountInString(text) > maxWord || isIdentifier(text) {
		return "*"
	}
	return text
}

// addAsked reads what a query asks for where its path does not say, of Falcor and GraphQL.
func (f features) addAsked(pairs []pair) {
	named := map[string][]string{}
	for _, each := range pairs {
		named[each.name] = append(named[each.name], each.value)
	}
	first := func(name string) string {
		if values := named[name]; len(values) > 0 {
			return values[0]
		}
		return ""
	}
	paths := slices.Concat(named["path"], named["paths"])
	if slices.ContainsFunc(paths, beginsList) {
		f.addFalcor(paths)
		return
	}
	text := first("query")
	if !isDocument(text) {
		text = ""
	}
	_, hasName := named["operationName"]
	if text != "" || hasName || strings.Contains(first("extensions"), "persistedQuery") {
		f.addGraphQL(text, first("operationName"), first("extensions"))
	}
}

func beginsList(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "[") }

// isDocument tells whether a text begins as a document of GraphQL's does: "query=flights" is none.
func isDocument(text string) bool {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "#") {
		return true
	}
	for _, word := range append([]string{"fragment"}, operationTypes...) {
		if rest, ok := strings.CutPrefix(text, word); ok {
			next, _ := utf8.DecodeRuneInString(rest)
			return rest == "" || (next != '_' && !unicode.IsLetter(next) && !unicode.IsNumber(next))
		}
	}
	return false
}

func (f features) addGraphQL(text, operation, extensions string) {
	f["protocol"] = "graphql"
	document := documentOf(text)
	if operation == "" {
		operation = document.name
	}
	switch persisted := persistedBy(extensions); {
	case operation != "":
		f["graphql.operation"] = wordOf(operation)
	case persisted != "":
		f["graphql.hash"] = persisted
	case document.kind != "":
		f["graphql.type"] = document.kind
		for _, field := range document.fields {
			f["graphql.field."+field] = ""
		}
	}
}

func persistedBy(extensions string) string {
	whole, _ := read(extensions)
	said, _ := whole.(map[string]any)
	query, _ := said["persistedQuery"].(map[string]any)
	hash, _ := query["sha256Hash"].(string)
	if strings.ContainsFunc(hash, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) }) {
		return ""
	}
	return cut(hash, maxHash)
}

// A document is what GraphQL's first operation is: its type, its name and its top-level fields.
type document struct {
	kind, name string
	fields     []string
}

func documentOf(text string) document {
	signs := slices.DeleteFunc(graphqlToken.FindAllString(cut(text, maxDocument), -1), func(sign string) bool {
		return sign[0] == '#' || sign[0] == '"'
	})
	at := 0
	for at < len(signs) && signs[at] != "{" && !slices.Contains(operationTypes, signs[at]) {
		at = behindBlock(signs, at) // a fragment that stands before the operation
	}
	if at >= len(signs) {
		return document{}
	}
	fields := topLevel(signs[at:])
	slices.Sort(fields)
	fields = slices.Compact(fields)
	found := document{kind: "query", fields: fields[:min(maxFields, len(fields))]}
	if signs[at] != "{" {
		found.kind = signs[at]
		if at+1 < len(signs) && graphqlName.MatchString(signs[at+1]) {
			found.name = signs[at+1]
		}
	}
	return found
}

func behindBlock(signs []string, at int) int {
	for depth := 0; at < len(signs); {
		depth += step(signs[at], "{", "}")
		at++
		if depth == 0 && signs[at-1] == "}" {
			break
		}
	}
	return at
}

// step is 1 where a sign opens a block, and -1 where it closes one.
func step(sign, opening, closing string) int {
	switch {
	case strings.Contains(opening, sign):
		return 1
	case strings.Contains(closing, sign):
		return -1
	}
	return 0
}

// topLevel lists the fields right inside an operation: by their names, not by their aliases.
func topLevel(signs []string) []string {
	var fields []string
	braces, others := 0, 0
	for i, sign := range signs {
		braces += step(sign, "{", "}")
		others += step(sign, "([", ")]")
		if braces == 1 && others == 0 && i > 0 && graphqlName.MatchString(sign) &&
			!slices.Contains([]string{"@", "...", "$", "on"}, signs[i-1]) &&
			(i+1 == len(signs) || signs[i+1] != ":") {
			fields = append(fields, sign)
		}
		if braces == 0 && sign == "}" {
			break
		}
	}
	return fields
}

// addFalcor gives each prefix of each path a feature: "falcor.videos", "falcor.videos.*.title".
func (f features) addFalcor(values []string) {
	found := map[string]string{}
	left := maxPaths
	for _, value := range values {
		whole, ok := read(value)
		paths := pathsOf(whole)
		for _, path := range paths[:min(left, len(paths))] {
			if keys, isPath := path.([]any); isPath {
				addPrefixes(found, keys)
			}
		}
		left -= min(left, len(paths))
		if !ok && beginsList(value) {
			found["unread"] = "query" // cut off, perhaps
		}
	}
	if len(found) == 0 {
		return
	}
	f["protocol"] = "falcor"
	for i, name := range slices.Sorted(maps.Keys(found)) {
		if i == maxPrefixes {
			break
		}
		f[name] = found[name]
	}
}

// pathsOf returns the paths of a list of them, or the one that was given.
func pathsOf(whole any) []any {
	list, ok := whole.([]any)
	isNoList := func(each any) bool { _, is := each.([]any); return !is }
	if ok && !slices.ContainsFunc(list, isNoList) {
		return list
	}
	return []any{whole}
}

// addPrefixes adds the prefixes of a path that end in a word; a set of keys makes one for each.
func addPrefixes(found map[string]string, path []any) {
	prefixes := []string{"falcor"}
	for _, keys := range path[:min(deepest, len(path))] {
		set, several := keys.([]any)
		if !several {
			set = []any{keys}
		}
		named := make([]string, len(set))
		for i, each := range set {
			named[i] = keyOf(each)
		}
		slices.Sort(named)
		prefixes = extended(prefixes, slices.Compact(named))
		for _, each := range prefixes {
			if several && !strings.HasSuffix(each, "*") || !several && named[0] != "*" {
				found[each] = ""
			}
		}
	}
}

func extended(prefixes, keys []string) []string {
	var longer []string
	for _, prefix := range prefixes {
		for _, key := range keys {
			if len(longer) < maxPrefixes {
				longer = append(longer, prefix+"."+key)
			}
		}
	}
	return longer
}

// keyOf keeps a key that is a word; ids, ranges and numbers are "*".
func keyOf(key any) string {
	if text, ok := key.(string); ok && text != "" {
		return strings.ReplaceAll(wordOf(text), ".", "_")
	}
	return "*"
}

func read(text string) (any, bool) {
	var whole any
	err := json.Unmarshal([]byte(text), &whole)
	return whole, err == nil
}
