package fit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

const slowBytes = 1000

var slowText = strings.Repeat("0123456789", slowBytes/10)

// slowly really sends its body over a length of time.
func slowly(over time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(slowBytes))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for at := range 10 {
			time.Sleep(over / 10)
			_, _ = io.WriteString(w, slowText[at*slowBytes/10:(at+1)*slowBytes/10])
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func slowCarried(server *breaking, arm byte, how string) context.Context {
	return fittest.Carrying(context.Background(), fittest.Sign(arm, fittest.Fault{How: how, Point: server.point()}))
}

func TestASlowBodyComesPieceByPieceAsFromAServerThatSendsSlowly(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	arrivals := func(base http.RoundTripper, ctx context.Context) (pieces int, first, last time.Duration, body string) {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/titles/17", nil)
		response, err := base.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		began, buffer := time.Now(), make([]byte, 4096)
		for err == nil {
			var read int
			if read, err = response.Body.Read(buffer); read > 0 {
				pieces++
				last = time.Since(began)
				if first == 0 {
					first = last
				}
				body += string(buffer[:read])
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return
	}
	plain := &http.Transport{DisableKeepAlives: true}
	for name, answer := range map[string]http.HandlerFunc{
		"length": slowly(0),
		"chunked": func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, slowText)
		},
	} {
		server.become(slowly(500 * time.Millisecond))
		realPieces, realFirst, realLast, want := arrivals(plain, context.Background())
		server.become(answer)
		pieces, first, last, body := arrivals(service.Transport(plain), slowCarried(server, 't', "slow-500"))
		if body != want || pieces != realPieces || first > 250*time.Millisecond || realFirst > 250*time.Millisecond ||
			last < 490*time.Millisecond || realLast < 490*time.Millisecond || last > 2*time.Second {
			t.Errorf("%s: %d bytes in %d pieces from %v to %v; really %d in %d from %v to %v",
				name, len(body), pieces, first, last, len(want), realPieces, realFirst, realLast)
		}
		if marks := service.Marks(); len(marks) != 1 || marks[0]["fit.fired"] != "slow" {
			t.Errorf("%s: %v", name, marks)
		}
	}
}

func TestADeadlineForAllOfItEndsASlowBody(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	server.become(slowly(5 * time.Second))
	plain := &http.Transport{DisableKeepAlives: true}
	for _, timeout := range []time.Duration{0, 200 * time.Millisecond} {
		within := func(ctx context.Context) (context.Context, context.CancelFunc) {
			if timeout > 0 {
				return ctx, func() {}
			}
			return context.WithTimeout(ctx, 200*time.Millisecond)
		}
		ctx, cancel := within(context.Background())
		really := seen(&http.Client{Transport: plain, Timeout: timeout}, ctx, server.URL)
		cancel()
		fine := server.become(slowly(0))
		ctx, cancel = within(slowCarried(server, 't', "slow-5000"))
		injected := seen(&http.Client{Transport: service.Transport(plain), Timeout: timeout}, ctx, server.URL)
		cancel()
		server.become(fine)
		// Behind any RoundTripper that is not its own, net/http's Client.Timeout is a deadline of the
		// request's context and a timer beside it, and whichever comes first says what ended the body.
		raced := timeout > 0 && injected == "200, then context.deadlineExceededError: context deadline exceeded"
		if injected != really && !raced {
			t.Errorf("injected %s\nreally   %s", injected, really)
		}
	}
}

func TestWhatCannotBeSlowIsNotClaimed(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	for name, answer := range map[string]http.HandlerFunc{
		"no content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"empty":      func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "0") },
		"reset":      hangUp,
	} {
		for _, arm := range []byte("tc") {
			server.become(answer)
			client := &http.Client{Transport: service.Transport(&http.Transport{DisableKeepAlives: true})}
			began := time.Now()
			seen(client, slowCarried(server, arm, "slow-5000"), server.URL)
			if marks := service.Marks(); len(marks) > 0 || time.Since(began) > 2*time.Second {
				t.Errorf("%s: %v after %v", name, marks, time.Since(began))
			}
		}
	}
}

func TestSlowInControlAndAtTheFirstCalls(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	server.become(slowly(0))
	client := &http.Client{Transport: service.Transport(nil)}
	began := time.Now()
	seen(client, slowCarried(server, 'c', "slow-5000"), server.URL)
	if marks := service.Marks(); len(marks) != 1 || marks[0]["fit.would_fire"] != "slow" || time.Since(began) > 2*time.Second {
		t.Errorf("control: %v after %v", marks, time.Since(began))
	}
	ctx, span := service.Provider.Tracer("test").Start(slowCarried(server, 't', "slow-300-n1"), "request")
	defer span.End()
	var took [2]time.Duration
	for i := range took {
		began = time.Now()
		seen(client, ctx, server.URL)
		took[i] = time.Since(began)
	}
	if took[0] < 300*time.Millisecond || took[1] > 250*time.Millisecond {
		t.Errorf("%v", took)
	}
}

func TestWhoClosesASlowBodyIsRidOfItAtOnceAndAHugeOneIsNotHeld(t *testing.T) {
	service, server := fittest.New(t, "api"), newBreaking(t)
	const huge = 100_000_000
	sent, gone := make(chan int, 1), make(chan struct{})
	server.become(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(huge))
		block, total := make([]byte, 100_000), 0
		for total < huge {
			if _, err := w.Write(block); err != nil {
				break
			}
			total += len(block)
		}
		sent <- total
		<-r.Context().Done()
		close(gone)
	})
	request, _ := http.NewRequestWithContext(slowCarried(server, 't', "slow-60000"), http.MethodGet, server.URL+"/titles/1", nil)
	response, err := service.Transport(&http.Transport{}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := response.Body.Read(make([]byte, 4096)); read == 0 || err != nil {
		t.Fatal(read, err)
	}
	waiting := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, response.Body)
		waiting <- err
	}()
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	_ = response.Body.Close()
	if err := <-waiting; err == nil || time.Since(began) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if total := <-sent; total > huge/5 {
		t.Errorf("%d bytes were taken from the server", total)
	}
	<-gone
}
