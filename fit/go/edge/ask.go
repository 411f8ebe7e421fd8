package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const (
	// grantWithin is how long a request waits for its device to be granted, whatever it is that takes so long.
	grantWithin = 20 * time.Millisecond

	// strayWithin is how long an answer that comes too late is waited for, to have its connection again.
	strayWithin = 2 * time.Second

	atOnce   = 4 // asks, each over a connection that is kept
	maxGrant = 4096

	failedFor        = 250 * time.Millisecond // nobody is asked after a failure; doubles
	longestFailedFor = time.Second
	refusedFor       = 200 * time.Millisecond // no device of an experiment is asked for after one was refused
)

// asks are for devices that may be stamped if the control plane grants it, made while their requests wait.
type asks struct {
	within time.Duration // how long a request waits for an answer
	free   chan struct{} // as many as may be under way at once

	mutex    sync.Mutex
	pending  map[asking]*pending
	failures int
	again    time.Duration            // when to ask again after a failure, by the steady clock
	refused  map[string]time.Duration // the same after a refusal, by experiment
}

func newAsks() asks {
	return asks{
		within: grantWithin, free: make(chan struct{}, atOnce),
		pending: map[asking]*pending{}, refused: map[string]time.Duration{},
	}
}

// asking is for whom is asked.
type asking struct {
	experiment string
	arm        fit.Arm
	device     mark
}

// pending is an ask on whose answer requests wait. Nil is granted where nothing was.
type pending struct {
	over    chan struct{}
	granted *held
}

// join returns the ask for a device that is under way, or begins one, which is the caller's to make. Its error says
// why nobody is to be asked now.
func (a *asks) join(whom asking) (one *pending, mine bool, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now, one := steady(), a.pending[whom]
	switch {
	case one != nil:
		return one, false, nil
	case now < a.again:
		return nil, false, errLate
	case now < a.refused[whom.experiment]:
		return nil, false, errRefused
	}
	one = &pending{over: make(chan struct{})}
	a.pending[whom] = one
	return one, true, nil
}

// leave tells whoever waits for an ask what came of it.
func (a *asks) leave(whom asking, granted *held) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.pending[whom].granted = granted
	close(a.pending[whom].over)
	delete(a.pending, whom)
}

// failed takes note of an ask that began then, and failed. Those that fail together are one failure.
func (a *asks) failed(began time.Duration) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if began >= a.again {
		a.again = steady() + min(longestFailedFor, failedFor<<min(a.failures, 10))
		a.failures++
	}
}

// answered takes note of an answer that came in time.
func (a *asks) answered(experiment string, granted bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.failures, a.again = 0, 0
	if granted {
		delete(a.refused, experiment)
		return
	}
	if len(a.refused) >= remembered {
		clear(a.refused)
	}
	a.refused[experiment] = steady() + refusedFor
}

// enrol tells whether a device may be stamped, by the lease that it returns, and whether it was enrolled before.
// It asks for the device where the edge's own allowance is used up.
func (p *poll) enrol(rules *held, chosen claimed, device mark) (under *held, again bool) {
	whom := asking{chosen.rule.experiment, chosen.arm, device}
	if rules.asks && p.allowances.usedUp(whom) {
		return p.ask(rules.version, whom)
	}
	if !rules.inForce() {
		return nil, false
	}
	admitted, again := p.allowances.admit(whom.experiment, whom.arm, whom.device)
	if !admitted {
		return nil, false
	}
	return rules, again
}

// ask asks for a device, unless somebody does already.
func (p *poll) ask(version string, whom asking) (under *held, again bool) {
	one, mine, err := p.asks.join(whom)
	switch {
	case errors.Is(err, errLate):
		p.allowances.tooLate()
		return nil, false
	case err != nil:
		return nil, false
	case mine:
		defer func() { p.asks.leave(whom, under) }()
		return p.askFor(version, whom), false
	}
	<-one.over
	return one.granted, true
}

// askFor asks, and settles what comes of it.
func (p *poll) askFor(version string, whom asking) *held {
	began, number := steady(), p.allowances.ask()
	defer p.tell()
	told, err := p.answerTo(number, version, whom)
	if err != nil {
		p.asks.failed(began)
		p.allowances.tooLate()
	} else {
		p.asks.answered(whom.experiment, *told.Granted)
	}
	var under *held
	if err == nil && *told.Granted && *told.Version == version {
		under = p.known.grant(version, began+told.lease())
	}
	if !p.allowances.settled(number, under != nil, whom) {
		return nil
	}
	return under
}

var (
	errLate    = errors.New("no answer in time")
	errRefused = errors.New("no device is granted")
	errGrant   = errors.New("no answer to this question")
)

// answerTo has the answer to an ask, or gives it up for good. A stray answer is read all the same, and not acted
// upon, so that its connection can be used again.
func (p *poll) answerTo(number int, version string, whom asking) (grantText, error) {
	over := time.NewTimer(p.asks.within)
	defer over.Stop()
	deadline := steady() + p.asks.within
	select {
	case p.asks.free <- struct{}{}:
	case <-over.C:
		return grantText{}, errLate
	}
	type reply struct {
		told grantText
		err  error
	}
	replies := make(chan reply, 1)
	go func() {
		defer func() { <-p.asks.free }()
		told, err := p.post(number, version, whom)
		replies <- reply{told, err}
	}()
	select {
	case came := <-replies:
		if steady() > deadline {
			return grantText{}, errLate
		}
		return came.told, came.err
	case <-over.C:
		return grantText{}, errLate
	}
}

type (
	askText struct {
		Edge       string  `json:"edge"`
		Experiment string  `json:"experiment"`
		Arm        fit.Arm `json:"arm"`
		Ask        int     `json:"ask"`
		Version    string  `json:"version"`
	}
	grantText struct {
		Granted *bool    `json:"granted"`
		Seconds *float64 `json:"lease_seconds"`
		Version *string  `json:"version"`
	}
)

// lease is how long it lets the edge act.
func (g grantText) lease() time.Duration {
	return time.Duration(min(*g.Seconds, maxLease.Seconds()) * float64(time.Second))
}

func (p *poll) post(number int, version string, whom asking) (told grantText, err error) {
	text, err := json.Marshal(askText{p.edge, whom.experiment, whom.arm, number, version})
	if err != nil {
		return told, err
	}
	ctx, cancel := context.WithTimeout(p.ctx, strayWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/api/v1/edge/asks", bytes.NewReader(text))
	if err != nil {
		return told, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	response, err := p.send(request)
	if err != nil {
		return told, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxGrant))
	if err != nil {
		return told, err
	}
	if err = json.Unmarshal(body, &told); err != nil {
		return told, err
	}
	if told.Granted == nil || told.Version == nil || told.Seconds == nil || *told.Seconds < 0 {
		return told, errGrant
	}
	return told, nil
}
