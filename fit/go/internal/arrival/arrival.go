// Package arrival is what an edge tells the sampler: this request has just come in, from nobody of ours.
//
// A device may send a traceparent, and then the span at the edge has a parent like any other. Only the edge
// knows that nobody will ever export that parent; it stands outside the tracing and sees no span.
package arrival

import (
	"context"
	"sync/atomic"
)

// Word is what the span of a request that has come in at an edge shall tell.
type Word struct {
	Query    string            // as it was sent: by it classes are told apart, and instrumentation leaves it out
	Features map[string]string // headers, cookies and entries of the baggage that somebody has chosen
	Again    bool              // this edge has stamped a request of its device for the same experiment before

	taken atomic.Bool
}

type key struct{}

// Leave has the first SERVER span that begins in the context, and has no parent in this process, marked.
func Leave(ctx context.Context, word *Word) context.Context {
	return context.WithValue(ctx, key{}, word)
}

// Take returns the word that was left, to the first who asks; nil to all others.
func Take(ctx context.Context) *Word {
	word, _ := ctx.Value(key{}).(*Word)
	if word == nil || !word.taken.CompareAndSwap(false, true) {
		return nil
	}
	return word
}
