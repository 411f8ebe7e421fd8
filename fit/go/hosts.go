package fit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// HostsVariable is the environment variable that lists to which hosts a failure context may be sent, besides
// those that are private, as in "api.partner.com,*.shop.example,203.0.113.0/24".
const HostsVariable = "FIT_HOSTS"

// private is who may have a context where nothing is listed, besides names of one label: names that nobody can
// register (RFC 6761, 6762 and 8375, ICANN's .internal; .svc and .lan, which no registry sells), and the addresses
// of RFC 1122, 1918, 3927, 6598, 4193 and 4291.
const private = "*.localhost,*.test,*.local,*.home.arpa,*.internal,*.svc,*.lan," +
	"0.0.0.0,127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,100.64.0.0/10," +
	"::,::1,fc00::/7,fe80::/10"

const askedHosts = 4096 // whose answers are remembered at once

// Hosts says to which hosts a failure context may be sent. What it does is specified in docs/failure-context.md
// and held against fit/protocol/vectors/hosts.json. A nil Hosts allows private ones.
type Hosts struct {
	entries []hostEntry
	nobody  bool // the variable is set, and empty

	mutex sync.RWMutex
	asked map[string]bool
}

// hostEntry tells whom an entry fits, and whether it allows or forbids.
type hostEntry struct {
	fits   func(host) bool
	allows bool
}

// host is one as it was read: a name, an address, or neither for any other spelling.
type host struct {
	name    string
	address netip.Addr
}

var (
	privateHosts, _ = ParseHosts(private)

	hostName    = regexp.MustCompile(`^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$`)
	numberLast  = regexp.MustCompile(`^(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)$`)
	hostIPv6    = regexp.MustCompile(`^([0-9a-f:.]*:[0-9a-f:.]*)(?:%[a-z0-9._~-]+)?$`)
	hostPort    = regexp.MustCompile(`^([^:]*|\[.*\]):[0-9]{1,5}$`)
	hostPattern = regexp.MustCompile(`^[a-z0-9_*-]+(?:\.[a-z0-9_*-]+)*$`)
	sealed      = regexp.MustCompile(`^\s*AWS4-\S+\s(?:.*[\s,])?SignedHeaders=([^,\s]*)`)
)

// ErrHosts is what [ParseHosts] returns of entries that it ignores.
var ErrHosts = errors.New(HostsVariable + " has what is no host, pattern or network")

// HostsFromEnv reads the environment. Where it returns an error, the hosts do without what could not be read.
func HostsFromEnv() (*Hosts, error) {
	text, set := os.LookupEnv(HostsVariable)
	if !set {
		return nil, nil
	}
	return ParseHosts(text)
}

// ParseHosts reads a list of hosts. Where it returns an error, the hosts do without what could not be read.
func ParseHosts(text string) (*Hosts, error) {
	made := &Hosts{nobody: true, asked: map[string]bool{}}
	var ignored error
	for _, listed := range strings.Split(text, ",") {
		if listed = strings.TrimSpace(listed); listed == "" {
			continue
		}
		made.nobody = false
		bare, forbids := strings.CutPrefix(listed, "!")
		fits := entryOf(strings.Map(lower, strings.TrimSpace(bare)))
		if fits == nil {
			ignored = errors.Join(ignored, fmt.Errorf("%w: %q is ignored", ErrHosts, listed))
			continue
		}
		made.entries = append(made.entries, hostEntry{fits, !forbids})
	}
	return made, ignored
}

// Allow tells whether a failure context may be sent to a host, given by name or address, without its port.
func (h *Hosts) Allow(name string) bool {
	if h == nil {
		h = privateHosts
	}
	h.mutex.RLock()
	allowed, known := h.asked[name]
	h.mutex.RUnlock()
	if known {
		return allowed
	}
	allowed = h.allow(hostOf(name))
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.asked) >= askedHosts {
		clear(h.asked)
	}
	h.asked[strings.Clone(name)] = allowed
	return allowed
}

func (h *Hosts) allow(of host) bool {
	for _, each := range h.entries {
		if each.fits(of) {
			return each.allows
		}
	}
	return !h.nobody && isPrivate(of)
}

func isPrivate(of host) bool {
	if of.name != "" && !strings.Contains(of.name, ".") {
		return true
	}
	return slices.ContainsFunc(privateHosts.entries, func(each hostEntry) bool { return each.fits(of) })
}

// AddressOf reads an address, with or without a port and brackets; the zero [netip.Addr] for anything else.
func AddressOf(text string) netip.Addr {
	if found := hostPort.FindStringSubmatch(text); found != nil {
		text = found[1]
	}
	return hostOf(text).address
}

func hostOf(text string) host {
	bare := strings.Map(lower, text)
	inside, opens := strings.CutPrefix(bare, "[")
	inside, closes := strings.CutSuffix(inside, "]")
	if found := hostIPv6.FindStringSubmatch(inside); found != nil && opens == closes {
		address, _ := netip.ParseAddr(found[1])
		return host{address: address.Unmap()}
	}
	bare = strings.TrimSuffix(bare, ".")
	if address, err := netip.ParseAddr(bare); err == nil && address.Is4() {
		return host{address: address}
	}
	if len(bare) <= 253 && hostName.MatchString(bare) && !numberLast.MatchString(bare) {
		return host{name: bare}
	}
	return host{}
}

// entryOf reads an entry: *, a network, an address or a name, or a pattern of one; nil for none of these.
func entryOf(text string) func(host) bool {
	if strings.Contains(text, "/") {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil
		}
		network = network.Masked()
		return func(of host) bool { return network.Contains(of.address) }
	}
	if found := hostPort.FindStringSubmatch(text); found != nil {
		text = found[1]
	}
	if text == "*" {
		return func(host) bool { return true }
	}
	if known := hostOf(text); known != (host{}) {
		return func(of host) bool { return of == known }
	}
	text = strings.TrimSuffix(text, ".")
	if !strings.Contains(text, "*") || !hostPattern.MatchString(text) {
		return nil
	}
	return patternOf(text)
}

// patternOf reads a pattern. Of digits it fits addresses only, or 10.* would fit 10.evil.com; else a * that does
// not come first stays within its label.
func patternOf(text string) func(host) bool {
	stars := func(text, each string) string {
		return strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, each)
	}
	if strings.Trim(text, "0123456789.*") == "" {
		digits := regexp.MustCompile("^" + stars(text, ".*") + "$")
		return func(of host) bool { return of.address.Is4() && digits.MatchString(of.address.String()) }
	}
	first, rest := "", text
	if after, begins := strings.CutPrefix(text, "*"); begins {
		first, rest = ".*", after
	}
	name := regexp.MustCompile("^" + first + stars(rest, "[^.]*") + "$")
	return func(of host) bool { return of.name != "" && name.MatchString(of.name) }
}

// Withhold returns the headers of a call to a host as they may go there: the same where it may have them as they
// are, else without our entry in their baggage. What is given is not touched. A baggage header that AWS's signature
// covers stays, for the call would be refused without it.
func (h *Hosts) Withhold(host string, headers http.Header) http.Header {
	sent := headers["Baggage"]
	if len(sent) == 0 || h.Allow(host) || covered(headers["Authorization"]) {
		return headers
	}
	kept := without(sent)
	if slices.Equal(kept, sent) {
		return headers
	}
	onward := make(http.Header, len(headers))
	for name, values := range headers {
		onward[name] = values
	}
	if onward["Baggage"] = kept; len(kept) == 0 {
		delete(onward, "Baggage")
	}
	return onward
}

// without takes our entry out of the values of a baggage header.
func without(values []string) []string {
	var kept []string
	for _, each := range values {
		found, others := Entries(each)
		if len(found) == 0 {
			kept = append(kept, each)
		} else if others != "" {
			kept = append(kept, others)
		}
	}
	return kept
}

// covered tells whether a signature of AWS's covers the baggage.
func covered(authorizations []string) bool {
	return slices.ContainsFunc(authorizations, func(each string) bool {
		found := sealed.FindStringSubmatch(each)
		return found != nil && slices.Contains(strings.Split(strings.ToLower(found[1]), ";"), "baggage")
	})
}
