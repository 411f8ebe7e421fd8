package proxy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
	"github.com/ldfi-dev/ldfi/fit/go/proxy"
)

// said returns what callers report now.
func said(callers *proxy.Callers, spans *tracetest.InMemoryExporter, caller string) []string {
	callers.Injector(caller).Report()
	callers.Flush(context.Background())
	for _, span := range slices.Backward(spans.GetSpans()) {
		if span.Name == "fit.reach" && span.Resource.Attributes()[0].Value.AsString() == caller {
			return strings.Fields(span.Attributes[0].Value.AsString())
		}
	}
	return nil
}

func TestAReverseProxyReportsThePeersThatWereCalled(t *testing.T) {
	standing := stand(t, echo(t).URL)
	if found := said(standing.callers, standing.spans, caller); found != nil {
		t.Errorf("reported %q before any call", found)
	}
	for range 3 {
		if _, err := standing.ask("", ""); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"1", "ldfi-proxy/" + fit.Version, "api>library:fit",
		"api>http:*:" + standing.address + "/*|corrupt,delay,empty,error,refused,reset,slow,status,truncated",
		"api>library:*",
		"api>rpc:*:" + standing.address + "/*|delay,error,grpc,refused,timeout",
	}
	if found := said(standing.callers, standing.spans, caller); !slices.Equal(found, want) {
		t.Errorf("reported %q, wanted %q", found, want)
	}
}

func TestAnExternalProcessorReportsAllCallsOfItsCaller(t *testing.T) {
	keys, _ := fit.ParseKeys(fittest.Key)
	spans := tracetest.NewInMemoryExporter()
	callers := proxy.NewCallers(keys, spans)
	defer callers.Shutdown(context.Background())
	proxy.NewProcessor(callers, "shop")
	proxy.NewProcessor(callers, "") // told of nobody, it reports for whom it meets
	want := []string{
		"1", "ldfi-proxy/" + fit.Version, "shop>library:fit",
		"shop>http:*|corrupt,delay,empty,error,refused,status",
		"shop>library:*",
		"shop>rpc:*|delay,error,grpc,refused,timeout",
	}
	if found := said(callers, spans, "shop"); !slices.Equal(found, want) {
		t.Errorf("reported %q, wanted %q", found, want)
	}
}
