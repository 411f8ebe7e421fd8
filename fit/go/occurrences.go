package fit

import (
	"container/list"
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// remembered is how many requests and points are counted at once.
const remembered = 4096

// occurrences counts how often each request (trace) has reached each point, for faults that hit only
// the first few calls. The longest untouched are forgotten first. In one process: the replicas of a
// service do not know of each other.
type occurrences struct {
	mutex  sync.Mutex
	counts map[occurrence]*list.Element
	recent list.List // of *counted, the latest in front
}

type occurrence struct {
	trace trace.TraceID
	point string
}

type counted struct {
	occurrence
	calls int
}

// admits counts this call; whether it is among the first.
func (o *occurrences) admits(trace trace.TraceID, point string, first int) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	key := occurrence{trace, point}
	element, known := o.counts[key]
	if !known {
		if o.counts == nil {
			o.counts = map[occurrence]*list.Element{}
		}
		element = o.recent.PushFront(&counted{occurrence: key})
		o.counts[key] = element
		if o.recent.Len() > remembered {
			oldest := o.recent.Remove(o.recent.Back()).(*counted)
			delete(o.counts, oldest.occurrence)
		}
	} else {
		o.recent.MoveToFront(element)
	}
	call := element.Value.(*counted)
	call.calls++
	return call.calls <= first
}
