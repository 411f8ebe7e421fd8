package fitgrpc

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const header = "baggage"

var (
	// scheme begins a target of gRPC's, or of a resolver that a program has registered.
	scheme = regexp.MustCompile(`^(?:(?:dns|ipv4|ipv6|xds|google-c2p|passthrough):(?://[^/]*)?/?|[a-z][a-z0-9+.-]*://[^/]*/)`)
	socket = regexp.MustCompile(`^unix(?:-abstract)?:`)
	port   = regexp.MustCompile(`:\w*$`)
)

// onward returns the context of a call as it may go to a target: without the failure context, to one that may not
// have it. Instrumentation writes the baggage of the one it is given, beneath interceptors.
func onward(ctx context.Context, injector *fit.Injector, target string) context.Context {
	sent, hasMore := metadata.FromOutgoingContext(ctx)
	if injector == nil || !hasMore && !injector.Armed(ctx) {
		return ctx
	}
	headers := http.Header{"Baggage": sent.Get(header), "Authorization": sent.Get("authorization")}
	if len(headers["Baggage"]) == 0 && !injector.Armed(ctx) {
		return ctx
	}
	hosts := hostsOf(target)
	ctx = injector.To(ctx, hosts...)
	kept := headers["Baggage"]
	for _, host := range hosts {
		headers = injector.Hosts().Withhold(host, headers)
	}
	if !slices.Equal(kept, headers["Baggage"]) {
		sent.Delete(header)
		sent.Append(header, headers["Baggage"]...)
		ctx = metadata.NewOutgoingContext(ctx, sent)
	}
	return ctx
}

// hostsOf returns the hosts of a target: dns:[//server/]host[:port], or several addresses after ipv4:. Without a
// scheme it is a name, or an address, by itself.
func hostsOf(target string) []string {
	if socket.MatchString(target) {
		return []string{"localhost"}
	}
	bare := strings.TrimPrefix(target, scheme.FindString(target))
	if unescaped, err := url.PathUnescape(bare); err == nil {
		bare = unescaped
	}
	all := strings.Split(bare, ",")
	for at, each := range all {
		each = strings.TrimSpace(each)
		if strings.Count(each, ":") < 2 || strings.Contains(each, "]") { // else it is an IPv6 address, and no more
			each = port.ReplaceAllString(each, "")
		}
		all[at] = each
	}
	return all
}
