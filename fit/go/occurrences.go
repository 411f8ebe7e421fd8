package fit

import (
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// occurrences counts how often each request (trace) has reached each point, for faults that hit only
// the first few calls. In one process: the replicas of a service do not know of each other.
type occurrences struct {
	mutex  sync.Mutex
	counts recent[occurrence, int]
}

type occurrence struct {
	trace trace.TraceID
	point string
}

// admits counts this call; whether it is among the first.
func (o *occurrences) admits(trace trace.TraceID, point string, first int) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	calls := o.counts.at(occurrence{trace, point})
	*calls++
	return *calls <= first
}
