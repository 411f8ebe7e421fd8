// Command shop makes the page of a book from what its services say, and counts the copies that are left.
//
// Planted: the warehouse stands in for the database, and nothing for the warehouse.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/XSAM/otelsql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.opentelemetry.io/otel/attribute"

	"github.com/ldfi-dev/ldfi/examples/polyglot/telemetry"
	fit "github.com/ldfi-dev/ldfi/fit/go"
	"github.com/ldfi-dev/ldfi/fit/go/fitsql"
)

const book = "17"

type shop struct {
	client *http.Client
	stock  *sql.DB // nil where there is no database
}

func main() {
	injector := telemetry.SetUp(context.Background())
	selling := &shop{telemetry.Client(injector), open(injector, os.Getenv("POSTGRES"))}
	telemetry.Serve(injector, http.HandlerFunc(selling.page))
}

// open connects to the stock: fit beneath OpenTelemetry's instrumentation.
func open(injector *fit.Injector, address string) *sql.DB {
	if address == "" {
		return nil
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		log.Fatal(err)
	}
	of := fitsql.Database{
		Name: config.Database, System: "postgresql", Address: fmt.Sprintf("%s:%d", config.Host, config.Port),
	}
	return otelsql.OpenDB(fitsql.Connector(injector, stdlib.GetConnector(*config), of),
		otelsql.WithAttributes(
			attribute.String("db.system.name", of.System), attribute.String("db.namespace", of.Name)),
		otelsql.WithSpanOptions(otelsql.SpanOptions{
			OmitConnResetSession: true, OmitConnectorConnect: true, OmitConnPrepare: true, OmitRows: true,
		}))
}

// page needs all of it: nothing stands in for the catalogue or the reviews.
func (s *shop) page(writer http.ResponseWriter, request *http.Request) {
	ctx := request.Context()
	page := map[string]any{}
	for _, part := range []struct {
		name string
		ask  func(context.Context) (any, error)
	}{
		{"about", func(ctx context.Context) (any, error) { return s.asked(ctx, "CATALOGUE", "books") }},
		{"stars", func(ctx context.Context) (any, error) { return s.asked(ctx, "REVIEWS", "stars") }},
		{"copies", s.copies},
	} {
		said, err := part.ask(ctx)
		if err != nil {
			http.Error(writer, fmt.Sprintf("%s: %v", part.name, err), http.StatusBadGateway)
			return
		}
		page[part.name] = said
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(page)
}

func (s *shop) copies(ctx context.Context) (any, error) {
	if s.stock == nil {
		return 3, nil
	}
	var many int
	err := s.stock.QueryRowContext(ctx, "select many from copies where book = $1", book).Scan(&many)
	if err == nil {
		return many, nil
	}
	return s.asked(ctx, "WAREHOUSE", "copies")
}

func (s *shop) asked(ctx context.Context, service, what string) (any, error) {
	url := fmt.Sprintf("%s/%s/%s", os.Getenv(service), what, book)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", service, response.Status)
	}
	var said any
	return said, json.NewDecoder(response.Body).Decode(&said)
}
