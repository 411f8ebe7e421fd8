package edge

import (
	"os"
	"sync/atomic"
	"time"
)

const lookEvery = 250 * time.Millisecond

// A halt is how an edge is stopped by itself, without anybody's network: always, or while a file is there.
type halt struct {
	always bool
	file   string

	next   atomic.Int64 // when to look for the file, by the steady clock
	halted atomic.Bool
}

// holds tells whether the edge is halted, as of a moment ago.
func (h *halt) holds() bool {
	if h.always || h.file == "" {
		return h.always
	}
	now, next := int64(steady()), h.next.Load()
	if now >= next && h.next.CompareAndSwap(next, now+int64(lookEvery)) {
		_, err := os.Lstat(h.file)
		h.halted.Store(err == nil)
	}
	return h.halted.Load()
}
