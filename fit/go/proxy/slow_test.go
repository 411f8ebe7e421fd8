package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

func TestABodyPassesSlowlyPieceByPiece(t *testing.T) {
	text := strings.Repeat("0123456789", 100)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = io.WriteString(w, text)
	}))
	defer upstream.Close()
	proxy := stand(t, upstream.URL)
	for arm, mark := range map[byte]string{'t': "fit.fired", 'c': "fit.would_fire"} {
		value := fittest.Sign(arm, fittest.Fault{How: "slow-500", Point: proxy.point()})
		request, _ := http.NewRequest(http.MethodGet, "http://"+proxy.address+"/titles/17", nil)
		request.Header.Set("Baggage", "fit="+value)
		request.Header.Set("Traceparent", traceparent)
		began := time.Now()
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		buffer, pieces, body := make([]byte, 4096), 0, ""
		for err == nil {
			var read int
			if read, err = response.Body.Read(buffer); read > 0 {
				pieces++
				body += string(buffer[:read])
			}
		}
		_ = response.Body.Close()
		took := time.Since(began)
		if body != text || response.ContentLength != int64(len(text)) {
			t.Errorf("%c: %d bytes of %d: %v", arm, len(body), response.ContentLength, err)
		}
		if slow := arm == 't'; slow != (took > 490*time.Millisecond) || slow != (pieces >= 8) {
			t.Errorf("%c: %d pieces in %v", arm, pieces, took)
		}
		if marks := proxy.marks(); len(marks) != 1 || marks[0][mark] != "slow" {
			t.Errorf("%c: %v", arm, marks)
		}
	}
}

func TestWhatCannotPassSlowlyIsNotClaimed(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	proxy := stand(t, upstream.URL)
	value := fittest.Sign('t', fittest.Fault{How: "slow-5000", Point: proxy.point()})
	for _, want := range []string{"204 ", "503 upstream connect error\n"} {
		if got, err := proxy.ask("fit="+value, traceparent); got != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		for _, marks := range proxy.marks() {
			if marks["fit.fired"] != "" {
				t.Errorf("%v", marks)
			}
		}
		upstream.Close()
	}
}
