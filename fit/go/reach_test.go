package fit_test

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/fitgrpc"
	"github.com/ldfi-dev/ldfi/fit/go/fitsql"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

func reports(spans *tracetest.InMemoryExporter) []string {
	var found []string
	for _, span := range spans.GetSpans() {
		if span.Name == "fit.reach" && span.SpanKind == trace.SpanKindInternal && !span.Parent.IsValid() {
			found = append(found, span.Attributes[0].Value.AsString())
		}
	}
	return found
}

func TestAReportNamesWhatIsWrapped(t *testing.T) {
	service := fittest.New(t, "my shop")
	if service.Report() {
		t.Error("who reaches nothing says something")
	}
	service.Transport(nil)
	service.Transport(nil)
	service.Reaches("rpc:*:prices/*", "grpc", "delay")
	if !service.Report() {
		t.Error("a report is not recorded")
	}
	want := "1 go/" + fit.Version +
		" my_shop>library:fit my_shop>http:* my_shop>library:net/http my_shop>rpc:*:prices/*|delay,grpc"
	if found := reports(service.Spans); len(found) != 1 || found[0] != want {
		t.Errorf("reported %q, wanted %q", found, want)
	}
}

// connector is a driver's that nobody connects by.
type connector struct{ driver.Connector }

func TestLibrariesAreCalledWhatTheVectorsSay(t *testing.T) {
	var all struct {
		Cases []struct {
			Language, Library string
			Held              bool
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "protocol", "vectors", "libraries.json"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, each := range all.Cases {
		if each.Held && (each.Language == "go" || each.Language == "any") {
			want[each.Library] = true
		}
	}
	service := fittest.New(t, "shop")
	service.Transport(nil)
	fitgrpc.Unary(service.Injector)
	fitgrpc.Stream(service.Injector)
	fitsql.Connector(service.Injector, connector{}, fitsql.Database{})
	service.Report()
	held := map[string]bool{}
	for _, each := range strings.Fields(reports(service.Spans)[0]) {
		if _, library, found := strings.Cut(each, ">library:"); found {
			held[library] = true
		}
	}
	if !maps.Equal(held, want) {
		t.Errorf("reported %v, wanted %v", held, want)
	}
}

func TestAnInjectorReportsByItself(t *testing.T) {
	t.Parallel()
	service := fittest.New(t, "shop")
	service.Transport(nil)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if len(reports(service.Spans)) > 0 {
			return
		}
	}
	t.Error("no report came")
}

func TestTheSamplerKeepsAReport(t *testing.T) {
	keys, _ := fit.ParseKeys(fittest.Key)
	injector := fit.New("shop", keys)
	spans := tracetest.NewInMemoryExporter()
	sampler := injector.Sampler(sdk.NeverSample())
	fit.WithTracerProvider(sdk.NewTracerProvider(sdk.WithSyncer(spans), sdk.WithSampler(sampler)))(injector)
	injector.Transport(nil)
	if !injector.Report() || len(reports(spans)) != 1 {
		t.Error("a report is dropped")
	}
}

func TestAReportIsBounded(t *testing.T) {
	service := fittest.New(t, "shop")
	for i := range 100 {
		service.Reaches(fmt.Sprintf("http:GET:host%d/*", i))
	}
	service.Report()
	if found := reports(service.Spans); len(found) != 1 || len(strings.Fields(found[0])) != 2+64 {
		t.Errorf("reported %q", found)
	}
	var nobody *fit.Injector
	nobody.Reaches("http:*")
	if nobody.Report() {
		t.Error("nobody reports")
	}
}
