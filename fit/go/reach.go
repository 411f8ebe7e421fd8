package fit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Version is this module's, as reports say it.
const Version = "0.2.0"

const attributeReach = attribute.Key("fit.reach")

const (
	maxReaches     = 63
	own            = "library:fit" // besides these: whoever reports libraries reports it
	maxReport      = 4092
	settledPause   = 3 * time.Second // for all that a program sets up one after the other
	firstPause     = 5 * time.Second // where a sampler has dropped a report; then twice as long each time
	longestPause   = 5 * time.Minute // from one report to the next
	defaultProgram = "go/" + Version
)

// reached is what an injector reports: patterns of points, as fit/protocol/reach.py reads them.
type reached struct {
	mutex    sync.Mutex
	program  string
	patterns []string
	more     chan struct{}
}

// WithProgram names who reports, by default this module.
func WithProgram(name string) Option {
	return func(i *Injector) { i.reached.program = name + "/" + Version }
}

// Reaches notes that points can be made to fail here: the rest of their names behind the caller, with *
// for anything, and the kinds by the word before their colon; none for all that such points have. From then on
// the injector reports it, as a span now and then: campaigns try nothing else. What wraps clients calls it, and
// says whose calls they are as "library:" with what OpenTelemetry's instrumentation of it is called
// (lineage/attributes.py); "library:*" is whatever makes them. Without any of these, spans of clients that OpenTelemetry
// instruments are taken for calls of others.
func (i *Injector) Reaches(rest string, kinds ...string) {
	if i == nil {
		return
	}
	pattern := point(i.service, "", "", "", "")
	pattern = pattern[:strings.Index(pattern, ">")+1] + rest
	if len(kinds) > 0 {
		kinds = slices.Sorted(slices.Values(kinds))
		pattern += "|" + strings.Join(kinds, ",")
	}
	r := &i.reached
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if slices.Contains(r.patterns, pattern) || len(r.patterns) >= maxReaches {
		return
	}
	r.patterns = append(r.patterns, pattern)
	if r.more == nil {
		r.more = make(chan struct{}, 1)
		go i.reporting(r.more)
		return
	}
	select {
	case r.more <- struct{}{}:
	default: // it has been told already
	}
}

// Report writes what can be reached, as a span of no request, and tells whether it was recorded. Nobody has
// to call it: it is done by itself a few seconds after the start, and every five minutes.
func (i *Injector) Report() bool {
	if i == nil {
		return false
	}
	i.reached.mutex.Lock()
	program, patterns := i.reached.program, slices.Sorted(slices.Values(i.reached.patterns))
	i.reached.mutex.Unlock()
	if len(patterns) == 0 {
		return false
	}
	caller, _, _ := strings.Cut(patterns[0], ">")
	patterns = slices.Insert(patterns, 0, caller+">"+own)
	if program == "" {
		program = defaultProgram
	}
	said := strings.Join(append([]string{"1", program}, patterns...), " ")
	if len(said) > maxReport {
		return false
	}
	_, span := i.tracer().Start(context.Background(), string(attributeReach),
		trace.WithNewRoot(), trace.WithAttributes(attributeReach.String(said)))
	defer span.End()
	return span.SpanContext().IsSampled()
}

func (i *Injector) reporting(more <-chan struct{}) {
	pause := firstPause
	for {
		time.Sleep(settledPause)
		if i.Report() {
			pause = longestPause
		} else {
			pause = min(2*pause, longestPause)
		}
		select {
		case <-more:
		case <-time.After(pause):
		}
	}
}
