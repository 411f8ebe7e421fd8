// Command shelf is a service that answers and asks nobody: OTEL_SERVICE_NAME says which.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	"github.com/ldfi-dev/ldfi/examples/polyglot/telemetry"
)

func main() {
	name := os.Getenv("OTEL_SERVICE_NAME")
	injector := telemetry.SetUp(context.Background())
	telemetry.Serve(injector, http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(name + ", as asked for")
	}))
}
