package proxy

import (
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// Envoy passes such paths on: were they not looked at, a foreign context would go with them.
func TestARequestArrivesWhateverItsPathIs(t *testing.T) {
	for path, cut := range map[string][2]string{
		"/%zz?a=b": {"/%zz", "a=b"}, "//[": {"//[", ""}, "": {"", ""}, "*": {"*", ""}, "/a?b": {"/a", "b"},
	} {
		sent := &extproc.HttpHeaders{Headers: &core.HeaderMap{Headers: []*core.HeaderValue{
			{Key: ":method", RawValue: []byte("GET")}, {Key: ":path", RawValue: []byte(path)},
			{Key: "baggage", RawValue: []byte("fit=foreign")},
		}}}
		came := arrivedOver(sent)
		if came.URL.Path != cut[0] || came.URL.RawQuery != cut[1] {
			t.Errorf("%q is cut into %q and %q", path, came.URL.Path, came.URL.RawQuery)
		}
		if came.Header.Get("baggage") == "" {
			t.Errorf("%q arrives without its headers", path)
		}
	}
}
