package fit

import (
	"crypto/sha256"
	"encoding/base64"
	"net"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxPointName = 240

// letters are what stays of the characters beyond ASCII: the ranges of fit/protocol/points.py.
const letters = `\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{2070}-\x{2fff}\x{3001}-\x{d7ff}` +
	`\x{f900}-\x{fefe}\x{ff00}-\x{ffef}\x{10000}-\x{dffff}`

var (
	unsafe         = regexp.MustCompile(`[^A-Za-z0-9._~*{}$()!,;=@+` + letters + `-]+`)
	unsafeTemplate = regexp.MustCompile(`[^A-Za-z0-9._~*{}$()!,;=@+/:` + letters + `-]+`)
	placeholder    = regexp.MustCompile(`\{[^}/]*\}|<[^>/]*>|(/):[A-Za-z_][\p{L}\p{N}_]*`)
	ipv4           = regexp.MustCompile(`^\d{1,3}(\.\d{1,3}){3}$`)
	escape         = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
)

// PointHash makes eight characters that stand for a point's name: SHA-256, first 48 bits, base64url.
func PointHash(name string) string {
	digest := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(digest[:6])
}

// HTTPPoint names an outgoing HTTP call: "api>http:GET:ratings/titles/*". The port is 0 where the URL
// names none; template is the value of url.template where the caller knows it, otherwise path, as it
// goes over the wire, with identifiers wildcarded.
func HTTPPoint(caller, method, host string, port int, path, template string) string {
	if port == 80 || port == 443 {
		port = 0 // some clients write it out, some do not
	}
	route := ""
	if template != "" {
		route = templateRoute(template)
	} else {
		route = TemplatePath(path)
	}
	return point(caller, "http", strings.ToUpper(method), address(host, port), route)
}

// RPCPoint names a remote procedure call by its full method: "api>rpc:Get:prices/shop.Prices". The peer
// is the target as the caller has it, HOST or HOST:PORT; it may be empty.
func RPCPoint(caller, fullMethod, peer string) string {
	bare := strings.Trim(fullMethod, "/")
	service, method := "", bare
	if slash := strings.LastIndexByte(bare, '/'); slash >= 0 {
		service, method = bare[:slash], bare[slash+1:]
	}
	host, port := SplitAuthority(peer)
	return point(caller, "rpc", method, address(host, port), asPath(service))
}

// DatabasePoint names a query by its verb and its table, at a database: "api>db:SELECT:shop/titles".
func DatabasePoint(caller, statement, database string) string {
	verb, table := templateStatement(statement)
	return point(caller, "db", verb, database, asPath(table))
}

// ConnectPoint names the opening of a connection to a database: "api>db:connect:shop".
func ConnectPoint(caller, database string) string {
	return point(caller, "db", "connect", database, "")
}

// MessagePoint names a produced message: "api>message:send:kafka/plays".
func MessagePoint(caller, operation, system, destination string) string {
	return point(caller, "message", operation, system, asPath(templateWords(destination)))
}

// SplitAuthority takes the port from HOST:PORT; it is 0 where there is none.
func SplitAuthority(authority string) (host string, port int) {
	host, text, err := net.SplitHostPort(authority)
	if err != nil {
		return authority, 0
	}
	port, err = strconv.Atoi(text)
	if err != nil {
		return host, 0
	}
	return host, port
}

func point(caller, kind, operation, peer, template string) string {
	name := clean(caller)
	if name == "" {
		name = "unknown"
	}
	parts := strings.Split(peer, ":")
	for i, part := range parts {
		parts[i] = clean(part)
	}
	peer = strings.Join(parts, ":")
	template = unsafeTemplate.ReplaceAllString(template, "_")
	if template != "" && template[0] != '/' {
		template = "/" + template
	}
	made := name + ">" + kind + ":" + clean(operation)
	if peer != "" || template != "" {
		made += ":" + peer + template
	}
	if utf8.RuneCountInString(made) > maxPointName {
		made = string([]rune(made)[:maxPointName])
	}
	return made
}

func clean(text string) string { return unsafe.ReplaceAllString(text, "_") }

// address names a host as a caller does. The port counts only where the host is an address: behind a
// name it is a detail of deployment, on loopback it is all that tells servers apart.
func address(host string, port int) string {
	bare := strings.Trim(strings.TrimRight(strings.Map(lower, host), "."), "[]")
	numeric := bare == "localhost" || strings.Contains(bare, ":") || ipv4.MatchString(bare)
	if numeric && port != 0 {
		return bare + ":" + strconv.Itoa(port)
	}
	return bare
}

func lower(letter rune) rune {
	if letter >= 'A' && letter <= 'Z' {
		return letter - 'A' + 'a'
	}
	return letter
}

func asPath(text string) string {
	if text == "" {
		return ""
	}
	return templated("/"+strings.TrimLeft(text, "/"), isIdentifier)
}

// TemplatePath replaces the identifiers in a URL's path with "*"; it drops query and fragment.
func TemplatePath(path string) string {
	return templated(path, func(segment string) bool { return !isASCII(segment) || isIdentifier(segment) })
}

func templated(path string, isIdentifier func(string) bool) string {
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if segment != "" && isIdentifier(segment) {
			segments[i] = "*"
		}
	}
	if path = strings.Join(segments, "/"); path == "" {
		return "/"
	}
	return path
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// templateRoute brings a framework's route ("/users/{id}", "/users/<int:id>", "/users/:id") to our form.
func templateRoute(route string) string {
	route, _, _ = strings.Cut(route, "?")
	return placeholder.ReplaceAllString(route, "${1}*")
}

var (
	comment = regexp.MustCompile(`(?s)^\s*(?:/\*.*?\*/|--[^\n]*\n)`)
	verb    = regexp.MustCompile(`^\s*([a-zA-Z]+)`)
	table   = regexp.MustCompile("(?i)\\b(?:from|into|update|table|join)\\s+[`\"\\[]?([A-Za-z0-9_.$" + letters + "-]+)")
)

// templateStatement reduces a statement to its verb and its table: all that is kept of it.
func templateStatement(statement string) (operation, of string) {
	for {
		found := comment.FindStringIndex(statement)
		if found == nil {
			break
		}
		statement = statement[found[1]:]
	}
	if found := verb.FindStringSubmatch(statement); found != nil {
		operation = strings.ToUpper(found[1])
	}
	if found := table.FindStringSubmatch(statement); found != nil {
		of = found[1]
	}
	return operation, of
}

// templateWords wildcards the identifiers in a name made of words and paths.
func templateWords(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if strings.Contains(word, "/") {
			words[i] = TemplatePath(word)
			continue
		}
		parts := strings.Split(word, ".")
		for j, part := range parts {
			parts[j] = strings.TrimPrefix(asPath(part), "/")
		}
		words[i] = strings.Join(parts, ".")
	}
	return strings.Join(words, " ")
}
