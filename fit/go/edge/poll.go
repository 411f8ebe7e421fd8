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

// held is a lease in force, and the contexts that were signed while it was.
type held struct {
	*lease
	ends time.Duration // by the steady clock

	mutex  sync.Mutex
	signed map[signedBy]string
}

type signedBy struct {
	rule    *rule
	arm     string
	expires int64
}

var quiet = &held{lease: &lease{}}

// A poll is an edge's line to the control plane: a long poll beside the requests, which fetches the rules, as
// a lease, and reports how many devices were treated. While the line is down it tries again, ever more
// slowly, and the lease that it holds runs out by itself.
type poll struct {
	url, token string
	edge       string // 16 characters, new for every edge
	client     *http.Client
	allowances allowances
	current    atomic.Pointer[held]

	begin   sync.Once
	ctx     context.Context
	stop    context.CancelFunc
	answer  []byte // the last one, and what was read in it
	answers *lease
}

func newPoll(service, token string) *poll {
	var name [8]byte
	_, _ = rand.Read(name[:])
	made := &poll{
		url: strings.TrimRight(service, "/"), token: token, edge: hex.EncodeToString(name[:]),
		client: &http.Client{
			// Of our own, so that nobody's instrumentation or injection sees it.
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment},
			// The token goes to the control plane and to nobody it might name.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	made.current.Store(quiet)
	made.ctx, made.stop = context.WithCancel(context.Background())
	return made
}

// lease returns the rules in force; those of nobody when the last one has run out.
func (p *poll) lease() *held {
	now := p.current.Load()
	if len(now.rules) == 0 || now.ends <= steady() {
		return quiet
	}
	return now
}

// hold puts a lease in force in place of the current one; nothing happens once stopped.
func (p *poll) hold(read *lease, ends time.Duration) {
	if p.ctx.Err() != nil {
		return
	}
	p.allowances.renew(read.rules)
	p.current.Store(&held{lease: read, ends: ends, signed: map[signedBy]string{}})
}

// start begins to poll, once.
func (p *poll) start() { p.begin.Do(func() { go p.run() }) }

// close ends it, and drops the lease.
func (p *poll) close() {
	p.stop()
	p.current.Store(quiet)
	p.client.CloseIdleConnections()
}

func (p *poll) run() {
	failures := 0
	for p.ctx.Err() == nil {
		askedAt := steady()
		err := p.ask(askedAt)
		pause := shortestPause - (steady() - askedAt)
		if err != nil && p.ctx.Err() == nil {
			if failures++; failures == 1 {
				slog.Warn("fit: no rules", "url", p.url, "error", err)
			}
			pause = backoff(failures)
		} else {
			failures = 0
		}
		select {
		case <-time.After(pause):
		case <-p.ctx.Done():
		}
	}
	p.current.Store(quiet) // should it have been held while somebody stopped us
}

func (p *poll) ask(askedAt time.Duration) error {
	report := p.allowances.report()
	body, err := p.fetch(report)
	if err != nil {
		return err
	}
	read, err := p.understood(body)
	if err != nil {
		p.current.Store(quiet) // perhaps it said stop
		return err
	}
	p.allowances.settle(report)
	p.hold(read, askedAt+read.seconds)
	return nil
}

func (p *poll) fetch(report []enrolled) ([]byte, error) {
	now := p.current.Load()
	wait := waitSeconds
	if len(now.rules) > 0 {
		wait = armedWaitSeconds
	}
	if p.allowances.urgent() {
		wait = 0
	}
	ctx, cancel := context.WithTimeout(p.ctx, time.Duration(wait)*time.Second+answerWithin)
	defer cancel()
	used, control, wants := written(report) // of letters that stand in a URL as they are
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf(
		"%s/api/v1/edge/rules?version=%s&wait=%d&edge=%s&used=%s&control=%s&wants=%s",
		p.url, url.QueryEscape(now.version), wait, p.edge, used, control, wants), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	request.Header.Set("Accept", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return nil, errors.New("it answers with " + response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
}

// understood reads an answer. Rules that have not changed, byte for byte, are not built anew.
func (p *poll) understood(body []byte) (*lease, error) {
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("%w: more than %d bytes", errRules, maxAnswer)
	}
	if p.answers == nil || !bytes.Equal(body, p.answer) {
		read, err := readLease(body)
		if err != nil {
			return nil, err
		}
		p.answer, p.answers = body, read
	}
	return p.answers, nil
}

// backoff doubles from half a second to ten, less a random part, so that many edges do not come back at once.
func backoff(failures int) time.Duration {
	longest := min(longestRetry, retryAfter<<min(failures-1, 10))
	return longest/2 + time.Duration(mathrand.Int64N(int64(longest/2)))
}
