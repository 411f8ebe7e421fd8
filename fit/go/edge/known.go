package edge

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// held is rules that are known, and until when they may be acted upon.
type held struct {
	*lease
	ends     time.Duration // by the steady clock
	streamed bool          // a stream is open that tells which rules there are

	mutex  sync.Mutex
	signed map[signedBy]string // contexts, as long as these rules are held
}

type signedBy struct {
	rule    *rule
	arm     string
	expires int64
}

var quiet = holding(&lease{}, 0, false)

func holding(rules *lease, ends time.Duration, streamed bool) *held {
	return &held{lease: rules, ends: ends, streamed: streamed, signed: map[signedBy]string{}}
}

// inForce tells whether the rules may be acted upon.
func (h *held) inForce() bool { return h.ends > steady() }

// known is which rules an edge knows. To know them is one thing: a stream tells them as offers, which nobody may
// act upon. The right to act is another, and comes with a lease, or with a device that was granted.
type known struct {
	allowances *allowances
	mutex      sync.Mutex // whoever writes has it
	latest     atomic.Pointer[held]
	closed     bool
}

// rules returns the latest ones, be they in force or offered; those of nobody where they are neither.
func (k *known) rules() *held {
	if now := k.latest.Load(); now.streamed || now.inForce() {
		return now
	}
	return quiet
}

// change puts what is made of the latest rules in their place; nil leaves them. Once closed nothing changes.
func (k *known) change(made func(now *held) *held) *held {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.closed {
		return nil
	}
	next := made(k.latest.Load())
	if next != nil {
		k.latest.Store(next)
	}
	return next
}

// offer takes over the rules that a stream tells. They are in force for as long as those before them were.
func (k *known) offer(read *lease) {
	k.change(func(now *held) *held {
		if read.precedes(now.lease) {
			return holding(now.lease, now.ends, true)
		}
		k.allowances.offer(read.rules)
		return holding(read, now.ends, true)
	})
}

// lease takes over rules that may be acted upon. A stream that tells of another epoch is no longer believed.
func (k *known) lease(read *lease, ends time.Duration) {
	k.change(func(now *held) *held {
		if read.precedes(now.lease) {
			return nil
		}
		k.allowances.renew(read.rules)
		return holding(read, ends, now.streamed && read.epoch() == now.epoch())
	})
}

// grant prolongs the lease of the rules of this version, and returns them; nil where others are known by now.
func (k *known) grant(version string, ends time.Duration) *held {
	return k.change(func(now *held) *held {
		if now.version != version {
			return nil
		}
		return holding(now.lease, max(now.ends, ends), now.streamed)
	})
}

// withdraw drops what a stream has offered.
func (k *known) withdraw() {
	k.change(func(now *held) *held { return holding(now.lease, now.ends, false) })
}

// lapse ends the right to act.
func (k *known) lapse() {
	k.change(func(now *held) *held { return holding(now.lease, 0, now.streamed) })
}

// silence drops everything.
func (k *known) silence() { k.change(func(*held) *held { return quiet }) }

// close drops everything for good.
func (k *known) close() {
	k.change(func(*held) *held {
		k.closed = true
		return quiet
	})
}

// precedes tells whether rules are older than others, as far as that can be told.
func (l *lease) precedes(other *lease) bool {
	return l.epoch() == other.epoch() && l.number() < other.number()
}

// epoch says which start of the service a version is of; versions are EPOCH-NUMBER.
func (l *lease) epoch() string {
	if _, ok := l.counted(); ok {
		return l.version[:strings.LastIndexByte(l.version, '-')]
	}
	return l.version
}

func (l *lease) number() uint64 {
	number, _ := l.counted()
	return number
}

func (l *lease) counted() (uint64, bool) {
	at := strings.LastIndexByte(l.version, '-')
	number, err := strconv.ParseUint(l.version[at+1:], 10, 64)
	return number, at >= 0 && err == nil
}
