package edge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	waitSeconds      = 2
	armedWaitSeconds = 1 // while rules are armed: what was treated is never older at the control plane

	shortestPause = 100 * time.Millisecond // from one question to the next
	retryAfter    = 500 * time.Millisecond
	longestRetry  = 10 * time.Second
	answerWithin  = 5 * time.Second // how much later than asked for an answer may come
	maxAnswer     = 4 << 20         // bytes; more is no answer to this question
)

// A poll is an edge's line to the control plane, beside the requests. A stream tells which rules there are. What
// lets the edge act on them is a lease, which it fetches by a long poll, and only while it has devices enrolled or
// may enrol some; by the same it reports how many. While the line is down it tries again, ever more slowly, and the
// lease that it holds runs out by itself. A control plane that knows no streams answers with a lease instead of
// one, and so it is polled without end.
type poll struct {
	url, token string
	edge       string // 16 characters, new for every edge
	devices    string // by what it tells devices apart
	client     *http.Client
	allowances allowances
	known      known
	asks       asks

	begin sync.Once
	ctx   context.Context
	stop  context.CancelFunc
	news  chan struct{} // holds one when there may be something to poll for
	older atomic.Bool   // the control plane knows no streams
}

func newPoll(service, token string) *poll {
	var name [8]byte
	_, _ = rand.Read(name[:])
	made := &poll{
		url: strings.TrimRight(service, "/"), token: token, edge: hex.EncodeToString(name[:]),
		client: &http.Client{
			// Of our own, so that nobody's instrumentation or injection sees it.
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: atOnce},
			// The token goes to the control plane and to nobody it might name.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		asks: newAsks(),
		news: make(chan struct{}, 1),
	}
	made.known.allowances = &made.allowances
	made.known.latest.Store(quiet)
	made.ctx, made.stop = context.WithCancel(context.Background())
	return made
}

// start begins to listen and to poll, once.
func (p *poll) start() {
	p.begin.Do(func() {
		stream, leases := &line{poll: p}, &line{poll: p}
		go stream.repeat(stream.listen)
		go leases.repeat(leases.renew)
	})
}

// close ends it, and drops the lease.
func (p *poll) close() {
	p.stop()
	p.known.close()
	p.client.CloseIdleConnections()
}

// A line asks one question after the other.
type line struct {
	*poll
	text []byte // the last answer, and the lease that was read in it
	read *lease
}

// repeat asks the question until the poll is closed.
func (l *line) repeat(question func() error) {
	failures := 0
	for l.ctx.Err() == nil {
		pause, began := shortestPause, steady()
		if err := question(); err == nil {
			failures = 0
		} else if l.ctx.Err() == nil {
			if steady()-began > longestRetry { // a stream that was held for long and breaks is the first failure
				failures = 0
			}
			if failures++; failures == 1 {
				slog.Warn("fit: no rules", "url", l.url, "error", err)
			}
			pause = backoff(failures)
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
		}
	}
}

// renew waits until there is something to poll for, and fetches a lease.
func (l *line) renew() error {
	for !l.due() {
		select {
		case <-l.news:
		case <-l.ctx.Done():
			return nil
		}
	}
	askedAt, heard := steady(), l.allowances.report()
	ctx, cancel := context.WithTimeout(l.ctx, l.wait()+answerWithin)
	defer cancel()
	asked := fmt.Sprintf("&asked=%d&late=%d", heard.asked, heard.late)
	response, err := l.question(ctx, "application/json", heard, asked)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	read, err := l.understood(response.Body)
	if err != nil {
		if errors.Is(err, errRules) {
			l.known.lapse() // perhaps it said stop
		}
		return err
	}
	l.hold(read, askedAt, heard)
	return nil
}

// due tells whether the edge has something to keep or to tell, and nobody else asks for leases.
func (p *poll) due() bool {
	return !p.older.Load() && (p.known.rules().allots() || p.allowances.hasNews())
}

// tell has whoever polls look whether there is something to poll for.
func (p *poll) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// hold puts a lease in force: the answer to what was asked then, when this was reported.
func (p *poll) hold(read *lease, askedAt time.Duration, heard report) {
	p.allowances.settle(heard)
	p.known.lease(read, askedAt+read.seconds)
}

// wait is for how long an answer may wait for other rules.
func (p *poll) wait() time.Duration {
	switch {
	case p.allowances.urgent():
		return 0
	case len(p.known.latest.Load().rules) > 0:
		return armedWaitSeconds * time.Second
	}
	return waitSeconds * time.Second
}

// question asks for rules, as a stream or as a lease, and reports. A control plane that knows no streams refuses
// parameters that it does not know, so more is only for one that does.
func (p *poll) question(ctx context.Context, accept string, heard report, more string) (*http.Response, error) {
	used, control, wants := written(heard.counts) // of letters that stand in a URL as they are
	now := p.known.latest.Load()
	if now.asks {
		wants = "" // who is wanted is asked for
	}
	address := fmt.Sprintf("%s/api/v1/edge/rules?version=%s&wait=%d&edge=%s&used=%s&control=%s&wants=%s%s",
		p.url, url.QueryEscape(now.version), p.wait()/time.Second, p.edge, used, control, wants, more)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Ldfi-Devices", p.devices)
	return p.send(request)
}

// send returns an answer that says that all is well.
func (p *poll) send(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+p.token)
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		_ = response.Body.Close()
		return nil, errors.New("it answers with " + response.Status)
	}
	return response, nil
}

// understood reads an answer. Rules that have not changed, byte for byte, are not built anew.
func (l *line) understood(answer io.Reader) (*lease, error) {
	text, err := io.ReadAll(io.LimitReader(answer, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("%w: more than %d bytes", errRules, maxAnswer)
	case l.read != nil && bytes.Equal(text, l.text):
		return l.read, nil
	}
	read, err := readLease(text)
	if err == nil {
		l.text, l.read = text, read
	}
	return read, err
}

// backoff doubles from half a second to ten, less a random part, so that many edges do not come back at once.
func backoff(failures int) time.Duration {
	longest := min(longestRetry, retryAfter<<min(failures-1, 10))
	return longest/2 + time.Duration(mathrand.Int64N(int64(longest/2)))
}
