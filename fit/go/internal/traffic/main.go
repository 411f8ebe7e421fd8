// Command traffic is what `python -m benchmarks.proxy` measures with: an upstream that answers at once, a
// bare reverse proxy to compare with, and clients that each wait for an answer before they ask again.
//
//	traffic upstream ADDRESS
//	traffic reverse ADDRESS UPSTREAM
//	traffic load
//
// load reads lines {"url", "connections", "requests", "pause", "headers"}, and for each writes the
// latencies. Times are in microseconds; a pause between an answer and the next request is of half that
// length to one and a half, so that clients do not fall into step.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

func main() {
	var err error
	switch words := os.Args[1:]; {
	case len(words) == 2 && words[0] == "upstream":
		err = http.ListenAndServe(words[1], http.HandlerFunc(answer))
	case len(words) == 3 && words[0] == "reverse":
		err = reverse(words[1], words[2])
	case len(words) == 1 && words[0] == "load":
		err = serve(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("%q: it is upstream, reverse or load", words)
	}
	if err != nil {
		log.Fatal(err)
	}
}

var body = []byte(`{"rating": 4, "of": "a title", "by": "somebody"}`)

func answer(writer http.ResponseWriter, _ *http.Request) {
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(body)
}

// reverse is a reverse proxy as anybody would write it, with as many idle connections as ours.
func reverse(address, upstream string) error {
	to, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	bare := httputil.NewSingleHostReverseProxy(to)
	bare.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
	return http.ListenAndServe(address, bare)
}

type asked struct {
	URL         string            `json:"url"`
	Connections int               `json:"connections"`
	Requests    int               `json:"requests"`
	Pause       float64           `json:"pause"`
	Headers     map[string]string `json:"headers"`
}

// serve keeps its connections from one line to the next.
func serve(from io.Reader, to io.Writer) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 10 * time.Second}
	lines, writer := bufio.NewScanner(from), json.NewEncoder(to)
	for lines.Scan() {
		var wanted asked
		if err := json.Unmarshal(lines.Bytes(), &wanted); err != nil {
			return err
		}
		took, err := load(client, wanted)
		if err != nil {
			return err
		}
		if err := writer.Encode(took); err != nil {
			return err
		}
	}
	return lines.Err()
}

func load(client *http.Client, wanted asked) ([]float64, error) {
	each := wanted.Requests / wanted.Connections
	took := make([]float64, each*wanted.Connections)
	failed := make([]error, wanted.Connections)
	var clients sync.WaitGroup
	for number := range wanted.Connections {
		clients.Go(func() { failed[number] = ask(client, wanted, took[number*each:(number+1)*each]) })
	}
	clients.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}

func ask(client *http.Client, wanted asked, took []float64) error {
	for i := range took {
		request, err := http.NewRequest(http.MethodGet, wanted.URL, nil)
		if err != nil {
			return err
		}
		for name, value := range wanted.Headers {
			request.Header.Set(name, value)
		}
		began := time.Now()
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", wanted.URL, response.Status)
		}
		took[i] = float64(time.Since(began).Nanoseconds()) / 1e3
		time.Sleep(time.Duration(wanted.Pause * (0.5 + rand.Float64()) * float64(time.Microsecond)))
	}
	return nil
}
