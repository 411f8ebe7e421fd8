// Command front is a front as somebody writes it, which is the edge: it asks UPSTREAM, with the baggage that a
// request goes on with. It is for tests.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/ldfi-dev/ldfi/fit/go/edge"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	front, err := edge.FromEnv()
	if err != nil {
		log.Print(err)
	}
	defer front.Close()
	server := &http.Server{Handler: front.Handler(http.HandlerFunc(serve))}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() { _ = server.Serve(listener) }()
	<-ctx.Done()
	_ = server.Close()
}

func serve(writer http.ResponseWriter, request *http.Request) {
	call, err := http.NewRequestWithContext(request.Context(), http.MethodGet, os.Getenv("UPSTREAM"), nil)
	if err != nil {
		log.Fatal(err)
	}
	call.Header["Baggage"] = request.Header["Baggage"]
	answer, err := http.DefaultClient.Do(call)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(writer, answer.Body)
}
