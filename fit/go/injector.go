package fit

import (
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

const (
	unknownService   = "unknown_service"
	verifiedContexts = 1024 // remembered at once
)

// Injector is what is installed in a process: its service's name, the keys it trusts, and the contexts
// it has verified already. A nil Injector does nothing, and everything that takes one takes nil.
type Injector struct {
	service  string
	keys     *Keys
	provider trace.TracerProvider
	hosts    *Hosts
	counts   occurrences
	requests requests
	reached  reached
	flushes  flushes
	guards   atomic.Bool // a propagator keeps back what nobody looks after

	mutex    sync.RWMutex
	verified map[string]*FailureContext // nil for what must not be obeyed
}

// Option is a choice that [New] and [FromEnv] take.
type Option func(*Injector)

// WithTracerProvider has faults recorded by this provider, where a call has no span of its own. By
// default it is OpenTelemetry's global one.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(i *Injector) { i.provider = provider }
}

// New makes the injector of a service, by the name that its spans carry. Without keys it is nil. To which hosts
// contexts may be sent it reads from the environment (FIT_HOSTS).
func New(service string, keys *Keys, options ...Option) *Injector {
	if keys == nil {
		return nil
	}
	hosts, _ := HostsFromEnv()
	injector := &Injector{service: service, keys: keys, hosts: hosts, verified: map[string]*FailureContext{}}
	for _, option := range options {
		option(injector)
	}
	return injector
}

// FromEnv makes the injector that the environment describes: FIT_KEYS, FIT_HOSTS, and the service's name from
// OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES. It is nil without keys. Where the keys cannot be read
// it is nil, too, and the error says why: a service must start all the same. Of FIT_HOSTS the error says what is
// ignored.
func FromEnv(options ...Option) (*Injector, error) {
	text := os.Getenv(KeysVariable)
	if text == "" {
		return nil, nil
	}
	keys, err := ParseKeys(text)
	if err != nil {
		return nil, err
	}
	_, ignored := HostsFromEnv()
	return New(serviceFromEnv(), keys, options...), ignored
}

func serviceFromEnv() string {
	if name := os.Getenv("OTEL_SERVICE_NAME"); name != "" {
		return name
	}
	for _, pair := range strings.Split(os.Getenv("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		name, value, _ := strings.Cut(pair, "=")
		if strings.TrimSpace(name) != "service.name" {
			continue
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err == nil && value != "" {
			return value
		}
	}
	return unknownService
}

// Service returns the name of the service that calls are made by.
func (i *Injector) Service() string {
	if i == nil {
		return ""
	}
	return i.service
}

// Hosts returns to which hosts failure contexts may be sent.
func (i *Injector) Hosts() *Hosts {
	if i == nil {
		return nil
	}
	return i.hosts
}

// grace is how long a context that has run out is still told from none: its request goes on.
const grace = 5 * time.Minute

// Verify reads a failure context, and tells whether it is to be obeyed now. What was verified is
// remembered, within bounds; the expiry is looked at every time.
func (i *Injector) Verify(value string) (*FailureContext, bool) {
	found, ok := i.recognize(value)
	if !ok || found.over() {
		return nil, false
	}
	return found, true
}

// recognize does the same for a context that has expired by less than grace: nothing may be injected by that.
func (i *Injector) recognize(value string) (*FailureContext, bool) {
	if i == nil || value == "" || len(value) > MaxLength {
		return nil, false
	}
	now := time.Now()
	i.mutex.RLock()
	found, known := i.verified[value]
	i.mutex.RUnlock()
	if !known {
		found, _ = decode(i.keys, value, now, grace) // nil for whatever is wrong with it
		i.remember(value, found)
	}
	if found == nil || !found.Expires.Add(grace).After(now) {
		return nil, false
	}
	return found, true
}

func (i *Injector) remember(value string, found *FailureContext) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if len(i.verified) >= verifiedContexts {
		clear(i.verified)
	}
	i.verified[strings.Clone(value)] = found
}

func (i *Injector) tracer() trace.Tracer { return i.tracerProvider().Tracer("fit") }

func (i *Injector) tracerProvider() trace.TracerProvider {
	if i.provider == nil {
		return otel.GetTracerProvider()
	}
	return i.provider
}
