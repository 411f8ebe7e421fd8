package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
	"github.com/ldfi-dev/ldfi/fit/go/proxy"
)

func TestAnUpstreamThatIsAStrangerGetsNoContext(t *testing.T) {
	value := fittest.Sign('t')
	for hosts, want := range map[string]string{"": "a=b,fit=" + value + ",c=d", "!127.0.0.0/8": "a=b,c=d"} {
		t.Setenv(fit.HostsVariable, hosts+",other.example")
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, strings.Join(r.Header["Baggage"], ","))
		}))
		t.Cleanup(upstream.Close)
		for _, trace := range []string{traceparent, ""} {
			if got, err := stand(t, upstream.URL).ask("a=b,fit="+value+",c=d", trace); err != nil || got != "200 "+want {
				t.Errorf("FIT_HOSTS=%s: %s, %v", hosts, got, err)
			}
		}
	}
}

// streaming is one over which Envoy asks about one request.
type streaming struct {
	grpc.ServerStream
	asked  []*extproc.ProcessingRequest
	answer *extproc.ProcessingResponse
}

func (*streaming) Context() context.Context { return context.Background() }

func (s *streaming) Recv() (*extproc.ProcessingRequest, error) {
	if len(s.asked) == 0 {
		return nil, io.EOF
	}
	first := s.asked[0]
	s.asked = s.asked[1:]
	return first, nil
}

func (s *streaming) Send(answer *extproc.ProcessingResponse) error {
	s.answer = answer
	return nil
}

func TestEnvoyTakesTheContextOutOfCallsToStrangers(t *testing.T) {
	keys, _ := fit.ParseKeys(fittest.Key)
	value := fittest.Sign('t')
	for _, each := range []struct{ authority, baggage, onward string }{
		{"ratings:8080", "a=b,fit=" + value, "a=b,fit=" + value},
		{"api.partner.com", "a=b,fit=" + value, "a=b"},
		{"api.partner.com:443", "fit=" + value, ""},
		{"[2001:db8::1]:443", "fit=" + value + ",fit=" + value + ",a=b", "a=b"},
	} {
		var headers []*core.HeaderValue
		for name, value := range map[string]string{":method": "GET", ":path": "/", ":authority": each.authority,
			"baggage": each.baggage, "traceparent": traceparent} {
			headers = append(headers, &core.HeaderValue{Key: name, RawValue: []byte(value)})
		}
		stream := &streaming{asked: []*extproc.ProcessingRequest{{Request: &extproc.ProcessingRequest_RequestHeaders{
			RequestHeaders: &extproc.HttpHeaders{Headers: &core.HeaderMap{Headers: headers}},
		}}}}
		callers := proxy.NewCallers(keys, tracetest.NewInMemoryExporter())
		if err := proxy.NewProcessor(callers, caller).Process(stream); err != nil {
			t.Fatal(err)
		}
		onward := each.baggage
		if mutation := stream.answer.GetRequestHeaders().GetResponse().GetHeaderMutation(); mutation != nil {
			onward = ""
			for _, set := range mutation.SetHeaders {
				onward = set.Header.Key + string(set.Header.RawValue)
			}
			onward = strings.TrimPrefix(onward, "baggage")
		}
		if onward != each.onward {
			t.Errorf("%s: goes on with %q, want %q", each.authority, onward, each.onward)
		}
	}
}
