package edge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"time"
)

const (
	streamType = "text/event-stream"
	acceptBoth = streamType + ", application/json;q=0.9"

	// silentFor is how long nothing may come over a stream: a line that says nothing comes every ten seconds.
	silentFor = 25 * time.Second
)

var (
	errEmpty = errors.New("the stream says nothing")
	errEpoch = errors.New("the stream tells of another epoch than the lease")
)

// listen opens a stream, and follows it until it ends. A control plane that knows none answers with a lease.
func (l *line) listen() error {
	err := l.opened()
	switch {
	case errors.Is(err, errRules):
		l.known.silence() // perhaps it said stop
	case err != nil:
		l.known.withdraw()
	}
	return err
}

func (l *line) opened() error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	patience := time.AfterFunc(l.wait()+answerWithin, cancel)
	defer patience.Stop()

	askedAt, heard := steady(), l.allowances.report()
	response, err := l.question(ctx, acceptBoth, heard, "")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	l.older.Store(kind != streamType)
	if kind == streamType {
		l.tell()
		return l.follow(&watched{response.Body, patience})
	}
	l.known.withdraw()
	read, err := l.understood(response.Body)
	if err != nil {
		return err
	}
	l.hold(read, askedAt, heard)
	return nil
}

// A watched stream is given up when nothing comes for long.
type watched struct {
	io.Reader
	patience *time.Timer
}

func (w *watched) Read(into []byte) (int, error) {
	w.patience.Reset(silentFor)
	return w.Reader.Read(into)
}

// follow takes over the rules of each event. A stream that ends in good order is none that has failed.
func (l *line) follow(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxAnswer)
	var data []byte
	events := 0
	for lines.Scan() {
		text := lines.Bytes()
		field, value, _ := bytes.Cut(text, []byte(":"))
		switch {
		case string(field) == "data" && len(data)+len(value) <= maxAnswer:
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		case string(field) == "data":
			return fmt.Errorf("%w: more than %d bytes", errRules, maxAnswer)
		case len(text) == 0 && data != nil:
			read, err := readLease(data)
			if err != nil {
				return err
			}
			l.known.offer(read)
			l.tell()
			data = nil
			events++
		case len(text) > 0 && events > 0 && !l.known.latest.Load().streamed:
			return errEpoch
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: more than %d bytes", errRules, maxAnswer)
	case err == nil && events == 0:
		return errEmpty
	default:
		return err
	}
}
