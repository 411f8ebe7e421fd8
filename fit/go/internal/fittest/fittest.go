// Package fittest signs failure contexts as the signer, fit/protocol/context.py, does, and records spans. It is
// for the tests of this module.
package fittest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const secret = "0123456789abcdef"

// Key is what FIT_KEYS holds in tests.
const Key = "k1:" + secret

// Fault is how a point fails, in the words of version 4 ("status-503-n2").
type Fault struct{ How, Point string }

// Sign makes a context that holds for a minute. The arm is 't' or 'c'.
func Sign(arm byte, faults ...Fault) string { return SignFor("e7c1", arm, faults...) }

// SignFor makes one of this experiment.
func SignFor(experiment string, arm byte, faults ...Fault) string {
	groups := make([]string, len(faults))
	for i, fault := range faults {
		groups[i] = fault.How + "~" + fit.PointHash(fault.Point)
	}
	expires := time.Now().Add(time.Minute).Unix()
	payload := fmt.Sprintf("4.k1.%s.%c.%d.%s", experiment, arm, expires, strings.Join(groups, "~"))
	digest := hmac.New(sha256.New, []byte(secret))
	digest.Write([]byte(payload))
	return payload + "." + base64.RawURLEncoding.EncodeToString(digest.Sum(nil)[:16])
}

// Carrying puts a context into the baggage.
func Carrying(ctx context.Context, value string) context.Context {
	member, err := baggage.NewMemberRaw(fit.Entry, value)
	if err != nil {
		panic(err)
	}
	held, err := baggage.FromContext(ctx).SetMember(member)
	if err != nil {
		panic(err)
	}
	return baggage.ContextWithBaggage(ctx, held)
}

// OfUser puts baggage of others into a request that carries no context.
func OfUser(ctx context.Context) context.Context {
	held, err := baggage.Parse("user=u1,tier=gold")
	if err != nil {
		panic(err)
	}
	return baggage.ContextWithBaggage(ctx, held)
}

// Service is an injector whose spans can be looked at.
type Service struct {
	*fit.Injector
	Provider *sdk.TracerProvider
	Spans    *tracetest.InMemoryExporter
}

// New makes the injector of a service.
func New(t testing.TB, service string) *Service {
	t.Helper()
	keys, err := fit.ParseKeys(Key)
	if err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewInMemoryExporter()
	made := &Service{Spans: spans}
	made.Provider = sdk.NewTracerProvider(sdk.WithSyncer(spans))
	made.Injector = fit.New(service, keys, fit.WithTracerProvider(made.Provider))
	t.Cleanup(func() { _ = made.Provider.Shutdown(context.Background()) })
	return made
}

// Sampled has its spans begun by the injector's sampler.
func (s *Service) Sampled() {
	s.Provider = sdk.NewTracerProvider(sdk.WithSyncer(s.Spans), sdk.WithSampler(s.Sampler(sdk.AlwaysSample())))
	fit.WithTracerProvider(s.Provider)(s.Injector)
}

// Marks returns what is written of faults on all spans of calls and requests that have ended, and forgets them.
func (s *Service) Marks() []map[string]string {
	var found []map[string]string
	for _, span := range s.Spans.GetSpans() {
		if span.Name == "fit.reach" || span.Name == "fit.mark" {
			continue
		}
		marks := map[string]string{}
		for _, each := range span.Attributes {
			if strings.HasPrefix(string(each.Key), "fit.") {
				marks[string(each.Key)] = fmt.Sprint(each.Value.AsInterface())
			}
		}
		for _, event := range span.Events {
			set := attribute.NewSet(event.Attributes...)
			marks["event"] = event.Name + " " + set.Encoded(attribute.DefaultEncoder())
		}
		if len(marks) > 0 {
			found = append(found, marks)
		}
	}
	s.Spans.Reset()
	return found
}
