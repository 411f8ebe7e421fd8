package fitgrpc

import (
	"slices"
	"testing"
)

func TestHostsOfTargets(t *testing.T) {
	for target, want := range map[string][]string{
		"prices": {"prices"}, "prices:50051": {"prices"}, "prices.shop:grpc": {"prices.shop"},
		"dns:///prices:50051": {"prices"}, "dns:prices.internal:443": {"prices.internal"},
		"dns://8.8.8.8/api.partner.com:443": {"api.partner.com"}, "passthrough:///10.0.0.1:50051": {"10.0.0.1"},
		"ipv4:10.0.0.1:50051,203.0.113.7:50051": {"10.0.0.1", "203.0.113.7"},
		"ipv6:%5B2001:db8::1%5D:50051":          {"[2001:db8::1]"}, "[::1]:50051": {"[::1]"}, "::1": {"::1"},
		"unix:///run/prices.sock": {"localhost"}, "unix-abstract:prices": {"localhost"},
		"kubernetes:///prices.shop:50051": {"prices.shop"}, "consul://127.0.0.1:8500/prices": {"prices"},
		"http://api.partner.com": {"http://api.partner.com"}, "": {""},
	} {
		if got := hostsOf(target); !slices.Equal(got, want) {
			t.Errorf("%s: %q", target, got)
		}
	}
}
