package edge

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const (
	// DeviceVariable is the environment variable that says who a device is: the first of its sources that a
	// request has, as in "header:x-device-id,cookie:session,baggage:user.id,address".
	DeviceVariable = "FIT_DEVICE"
	// TrustedVariable lists whose X-Forwarded-For is believed, as uvicorn has it.
	TrustedVariable = "FORWARDED_ALLOW_IPS"

	ownDevice    = "header:x-device-id"
	loopback     = "127.0.0.1"
	maxDevice    = 1024 // characters of an id; what is longer is none
	maxForwarded = 20   // addresses of proxies that are gone through
	blank        = " \t"
)

var deviceSource = regexp.MustCompile("^(?:(header|cookie|baggage):([A-Za-z0-9!#$%&'*+.^_`|~-]{1,64})|address)$")

// identity tells which device a request comes from, as fit/device.py does; held against fit/protocol/vectors/devices.json.
type identity struct {
	sources []source
	trusted func(netip.Addr) bool // asked of no address, such as that of a Unix socket: whether everybody is
}

type source struct{ kind, name string }

// parseDevices reads what the two variables say. What is no source is left out, and the error names it.
func parseDevices(text, trusted string) (identity, error) {
	believed, _ := fit.ParseHosts(trusted + ",!*")
	isAll := func(each string) bool { return strings.Trim(each, blank) == "*" }
	everybody := slices.ContainsFunc(strings.Split(trusted, ","), isAll)
	made := identity{trusted: func(address netip.Addr) bool {
		return address.IsValid() && believed.Allow(address.String()) || !address.IsValid() && everybody
	}}
	var refused error
	for _, each := range strings.Split(text, ",") {
		if each = strings.Trim(each, blank); each == "" {
			continue
		}
		found := deviceSource.FindStringSubmatch(each)
		switch {
		case found == nil:
			refused = errors.Join(refused, fmt.Errorf(
				"%s names %q: write header:NAME, cookie:NAME, baggage:KEY or address", DeviceVariable, cut(each, 80)))
		case found[1] == "":
			made.sources = append(made.sources, source{kind: "address"})
		case found[1] == "header":
			made.sources = append(made.sources, source{"header", strings.ToLower(found[2])})
		default:
			made.sources = append(made.sources, source{found[1], found[2]})
		}
	}
	return made, refused
}

// kinds says by what devices are told apart, without names.
func (d identity) kinds() string {
	var kinds []string
	for _, each := range d.sources {
		if !slices.Contains(kinds, each.kind) {
			kinds = append(kinds, each.kind)
		}
	}
	return strings.Join(kinds, ",")
}

// of returns the device of a request with these values of headers, whose names are in small letters, over a
// connection from this address; empty where nobody knows.
func (d identity) of(values func(name string) []string, peer string) string {
	for _, each := range d.sources {
		found := ""
		switch each.kind {
		case "header":
			var said []string
			for _, value := range values(each.name) {
				if value = strings.Trim(value, blank); value != "" {
					said = append(said, value)
				}
			}
			found = strings.Join(said, ",")
		case "cookie":
			found = cookie(each.name, values("cookie"))
		case "baggage":
			found = entry(each.name, values("baggage"))
		default:
			found = asID(d.origin(peer, values("x-forwarded-for")))
		}
		if found != "" && utf8.RuneCountInString(found) <= maxDevice {
			return found
		}
	}
	return ""
}

// cookie returns the first cookie of a name that has a value, without the quotes around it.
func cookie(name string, headers []string) string {
	for _, header := range headers {
		for _, pair := range strings.Split(header, ";") {
			key, value, _ := strings.Cut(pair, "=")
			value = strings.Trim(value, blank)
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			if strings.Trim(key, blank) == name && value != "" {
				return value
			}
		}
	}
	return ""
}

// entry returns the first entry of the baggage of a key that has a value, decoded.
func entry(name string, headers []string) string {
	for _, header := range headers {
		for _, member := range strings.Split(header, ",") {
			member, _, _ = strings.Cut(member, ";")
			key, value, _ := strings.Cut(member, "=")
			value = strings.Trim(value, blank)
			if strings.Trim(key, blank) == name && value != "" {
				return unquoted(value)
			}
		}
	}
	return ""
}

// origin returns whose request it is: past the proxies that are trusted, from the nearest one on.
func (d identity) origin(peer string, forwarded []string) netip.Addr {
	var said []string
	for _, header := range forwarded {
		for _, each := range strings.Split(header, ",") {
			if each = strings.Trim(each, blank); each != "" {
				said = append(said, each)
			}
		}
	}
	at := fit.AddressOf(peer)
	believed := d.trusted(at)
	for i := range min(maxForwarded, len(said)) {
		if !believed {
			break
		}
		at = fit.AddressOf(said[len(said)-1-i])
		believed = at.IsValid() && d.trusted(at)
	}
	return at
}

// asID returns an address as an id; of IPv6 the first half, since the other half changes from day to day.
func asID(address netip.Addr) string {
	if !address.IsValid() {
		return ""
	}
	if address.Is4() {
		return address.String()
	}
	sent := address.As16()
	return fmt.Sprintf("%x:%x:%x:%x::/64", uint16(sent[0])<<8|uint16(sent[1]), uint16(sent[2])<<8|uint16(sent[3]),
		uint16(sent[4])<<8|uint16(sent[5]), uint16(sent[6])<<8|uint16(sent[7]))
}
