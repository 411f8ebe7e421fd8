package fit

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	slowGap    = 100 * time.Millisecond // between two pieces of a slow body, at most, as long as it has a byte for each
	fewestSlow = 10                     // pieces
	slowBuffer = 32 * 1024
)

// SlowDown has the body of an answer come over the length of a fault of the kind [Slow], and ends the
// fault: response is what the call came to, nil where it failed. A body cannot be slow that is not there;
// then nothing happens, and nothing is claimed. What comes of the body is passed on in equal pieces, the
// last of them when the length is over. Of a body whose length nobody announced, what comes first is
// passed on so, and what comes after that when the length is over. Whoever reads it gives up with ctx.
func (f *Fault) SlowDown(ctx context.Context, response *http.Response) {
	defer f.release()
	if f.strikes == nil || response == nil || bodiless(response) || !f.strikes() {
		return
	}
	response.Body = &slowBody{
		body: response.Body, reader: bufio.NewReaderSize(response.Body, slowBuffer), ctx: ctx,
		began: time.Now(), over: f.Longest, length: response.ContentLength, closed: make(chan struct{}),
	}
}

func bodiless(response *http.Response) bool {
	return response.Body == nil || response.Body == http.NoBody || response.ContentLength == 0 ||
		response.StatusCode == http.StatusSwitchingProtocols
}

type slowBody struct {
	body   io.Closer
	reader *bufio.Reader
	ctx    context.Context
	began  time.Time
	over   time.Duration
	length int64 // negative where nobody has announced it
	at     int64
	closed chan struct{}
	once   sync.Once
}

// Read returns what may come, and waits until anything may.
func (b *slowBody) Read(into []byte) (int, error) {
	_, err := b.reader.Peek(1)
	if err == nil && b.length < 0 {
		b.length = int64(b.reader.Buffered())
	}
	if waited := b.wait(); waited != nil {
		return 0, waited
	}
	if err != nil {
		return 0, err
	}
	size := min(b.size(), int64(len(into)), int64(b.reader.Buffered()))
	read, err := b.reader.Read(into[:size])
	b.at += int64(read)
	return read, err
}

// Close closes the body; whoever waits for it waits no longer.
func (b *slowBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.body.Close()
}

func (b *slowBody) wait() error {
	timer := time.NewTimer(time.Until(b.began.Add(b.due())))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-b.closed:
		return http.ErrBodyReadAfterClose
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}

// due tells how long after the headers the next byte comes.
func (b *slowBody) due() time.Duration {
	if b.at >= b.length {
		return b.over
	}
	pieces := b.pieces()
	return time.Duration(float64(b.over) * float64(b.at*pieces/b.length+1) / float64(pieces))
}

// size returns how many bytes come at once with the next one.
func (b *slowBody) size() int64 {
	if b.at >= b.length {
		return slowBuffer
	}
	pieces := b.pieces()
	next := b.at*pieces/b.length + 1
	return (next*b.length+pieces-1)/pieces - b.at
}

func (b *slowBody) pieces() int64 {
	return min(max(fewestSlow, int64((b.over+slowGap-1)/slowGap)), b.length)
}
