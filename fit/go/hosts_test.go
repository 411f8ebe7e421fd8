package fit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

// sent is a transport that keeps what it was given.
type sent struct{ request *http.Request }

func (s *sent) RoundTrip(request *http.Request) (*http.Response, error) {
	s.request = request
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}}, nil
}

func TestTheContextGoesToHostsThatMayHaveIt(t *testing.T) {
	value := fittest.Sign('t')
	byBaggage := propagation.Baggage{}
	aws := "AWS4-HMAC-SHA256 Credential=x, SignedHeaders=baggage;host, Signature=y"
	for name, each := range map[string]struct {
		hosts, url string
		prepare    func(*http.Request)
		goes       bool
	}{
		"a name in the cluster": {url: "http://ratings/", goes: true},
		"a private address":     {url: "https://10.1.2.3:8443/", goes: true},
		"a stranger":            {url: "https://api.partner.com/"},
		"a stranger's address":  {url: "http://203.0.113.7:80/"},
		"one that is listed":    {url: "https://api.partner.com:8443/", hosts: "*.partner.com", goes: true},
		"one that is forbidden": {url: "http://ratings/", hosts: "!ratings"},
		"by hand": {url: "https://api.partner.com/", prepare: func(r *http.Request) {
			r.Header["Baggage"] = []string{"user=u1 , fit=" + value + ";p=1", "%66it=x", "tier=gold"}
		}},
		"by its Host alone": {url: "https://api.partner.com/", prepare: func(r *http.Request) { r.Host = "ratings" }},
		"where its signature covers it": {url: "https://s3.example.com/", goes: true, prepare: func(r *http.Request) {
			r.Header.Set("Authorization", aws)
		}},
	} {
		if each.hosts != "" {
			t.Setenv(fit.HostsVariable, each.hosts)
		} else {
			t.Setenv(fit.HostsVariable, "other.example")
		}
		service, guarded, base := fittest.New(t, "api"), fittest.New(t, "api"), &sent{}
		kept := otelhttp.WithPropagators(guarded.Propagator(byBaggage))
		for order, transport := range map[string]http.RoundTripper{
			"beneath":          otelhttp.NewTransport(service.Transport(base), otelhttp.WithPropagators(byBaggage)),
			"above":            service.Transport(otelhttp.NewTransport(base, otelhttp.WithPropagators(byBaggage))),
			"beneath, guarded": otelhttp.NewTransport(guarded.Transport(base), kept),
			"above, guarded":   guarded.Transport(otelhttp.NewTransport(base, kept)),
		} {
			ctx := fittest.Carrying(fittest.OfUser(context.Background()), value)
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, each.url, nil)
			if each.prepare != nil {
				each.prepare(request)
			}
			if each.goes && order != "beneath" && request.Header.Get("Authorization") != "" {
				continue // what signs stands above all that writes
			}
			if _, err := transport.RoundTrip(request); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(base.request.Header["Baggage"], ",")
			if strings.Contains(got, value) != each.goes || strings.Contains(got, "it=x") ||
				!strings.Contains(got, "user=u1") || !strings.Contains(got, "tier=gold") {
				t.Errorf("%s, otelhttp %s: %q", name, order, got)
			}
		}
	}
}

func TestAProxyThatReadsARequestMustBeAllowedToo(t *testing.T) {
	var got string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = strings.Join(r.Header["Baggage"], ",")
	}))
	defer proxy.Close()
	address, _ := url.Parse(proxy.URL)
	for listed, goes := range map[string]bool{
		"127.0.0.1,ratings.internal,!*": true, "ratings.internal,!*": false, "127.0.0.1,!*": false,
	} {
		t.Setenv(fit.HostsVariable, listed)
		for _, guarded := range []bool{false, true} {
			service, propagator := fittest.New(t, "api"), propagation.TextMapPropagator(propagation.Baggage{})
			if guarded {
				propagator = service.Propagator(propagator)
			}
			base := &http.Transport{Proxy: http.ProxyURL(address)}
			client := otelhttp.NewTransport(service.Transport(base), otelhttp.WithPropagators(propagator))
			ctx := fittest.Carrying(fittest.OfUser(context.Background()), fittest.Sign('t'))
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://ratings.internal/", nil)
			response, err := client.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			base.CloseIdleConnections()
			if strings.Contains(got, "fit=") != goes || !strings.Contains(got, "user=u1") {
				t.Errorf("%s, guarded %t: %q", listed, guarded, got)
			}
		}
	}
}

func TestAClientThatNobodyHasWrappedSendsNoContext(t *testing.T) {
	service, base := fittest.New(t, "api"), &sent{}
	client := otelhttp.NewTransport(base, otelhttp.WithPropagators(service.Propagator(propagation.Baggage{})))
	ctx := fittest.Carrying(fittest.OfUser(context.Background()), fittest.Sign('t'))
	for _, of := range []struct {
		ctx  context.Context
		goes bool
	}{{ctx, false}, {service.To(ctx, "ratings"), true}, {service.To(ctx, "ratings", "api.partner.com"), false}} {
		request, _ := http.NewRequestWithContext(of.ctx, http.MethodGet, "http://ratings/", nil)
		if _, err := client.RoundTrip(request); err != nil {
			t.Fatal(err)
		}
		if got := base.request.Header.Get("Baggage"); strings.Contains(got, "fit=") != of.goes || !strings.Contains(got, "user=u1") {
			t.Errorf("%q", got)
		}
	}
}

// What a caller's own calls come to is decided on this side.
func TestACallToAStrangerCanFail(t *testing.T) {
	service, base := fittest.New(t, "api"), &sent{}
	value := fittest.Sign('t', fittest.Fault{How: "status-404", Point: "api>http:GET:api.partner.com/v1"})
	ctx := fittest.Carrying(context.Background(), value)
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "https://api.partner.com/v1", nil)
	response, err := service.Transport(base).RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusNotFound || len(service.Marks()) != 1 {
		t.Errorf("%v, %v", response, err)
	}
}

func TestWhatIsNoHostIsSaid(t *testing.T) {
	t.Setenv(fit.KeysVariable, fittest.Key)
	t.Setenv(fit.HostsVariable, "https://api.partner.com/,b.com")
	made, err := fit.FromEnv()
	if made == nil || err == nil || !strings.Contains(err.Error(), "https://api.partner.com/") || !made.Hosts().Allow("b.com") {
		t.Errorf("%v, %v", made, err)
	}
}
