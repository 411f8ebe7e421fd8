package fitsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/ldfi-dev/ldfi/fit/go/fitsql"
	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
)

// database stands for PostgreSQL and its driver: it remembers what it was told, and raises what a DO
// block raises.
type database struct {
	mutex    sync.Mutex
	executed []string
	opened   int
	skips    bool // as drivers that want statements with arguments prepared
}

type raised string

func (r raised) Error() string { return string(r) }

func (d *database) Driver() driver.Driver { return nil }

func (d *database) Connect(context.Context) (driver.Conn, error) {
	d.opened++
	return &connection{d}, nil
}

func (d *database) execute(statement string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.executed = append(d.executed, statement)
	if _, after, found := strings.Cut(statement, "ERRCODE = '"); found {
		return raised(after[:5])
	}
	return nil
}

type connection struct{ *database }

func (c *connection) Prepare(query string) (driver.Stmt, error) {
	return &statement{c.database, query}, nil
}
func (c *connection) Close() error              { return nil }
func (c *connection) Begin() (driver.Tx, error) { return nil, errors.ErrUnsupported }
func (c *connection) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.skips && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return rows{}, c.execute(query)
}
func (c *connection) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.execute(query)
}

type statement struct {
	*database
	query string
}

func (s *statement) Close() error                               { return nil }
func (s *statement) NumInput() int                              { return -1 }
func (s *statement) Exec([]driver.Value) (driver.Result, error) { return nil, s.execute(s.query) }
func (s *statement) Query([]driver.Value) (driver.Rows, error)  { return rows{}, s.execute(s.query) }

type rows struct{}

func (rows) Columns() []string         { return []string{"id"} }
func (rows) Close() error              { return nil }
func (rows) Next([]driver.Value) error { return io.EOF }

func open(t *testing.T, inner *database, system string) (*fittest.Service, *sql.DB) {
	service := fittest.New(t, "bookmarks")
	of := fitsql.Database{Name: "recordsdb", System: system, Address: "127.0.0.1:5432"}
	db := sql.OpenDB(fitsql.Connector(service.Injector, inner, of))
	t.Cleanup(func() { _ = db.Close() })
	return service, db
}

const (
	update = "UPDATE marks SET name = 'x' WHERE id = 17"
	point  = "bookmarks>db:UPDATE:recordsdb/marks"
)

func TestTheServerRaisesItsOwnErrors(t *testing.T) {
	for how, state := range map[string]string{
		"sql-deadlock": "40P01", "sql-serialization": "40001", "sql-lost": "57P01", "sql-readonly": "25006",
	} {
		inner := &database{}
		service, db := open(t, inner, "postgresql")
		value := fittest.Sign('t', fittest.Fault{How: how, Point: point})
		_, err := db.ExecContext(fittest.Carrying(context.Background(), value), update)
		if err != raised(state) || len(inner.executed) != 1 || strings.Contains(inner.executed[0], "UPDATE marks") {
			t.Errorf("%s: %v after %q", how, err, inner.executed)
		}
		if marks := service.Marks(); len(marks) != 1 || marks[0]["fit.fired"] != strings.Replace(how, "-", ":", 1) {
			t.Errorf("%s: proof %v", how, marks)
		}
		_, err = db.ExecContext(context.Background(), update)
		if fresh := inner.opened == 2; err != nil || fresh != (how == "sql-lost") {
			t.Errorf("%s: then %v, with %d connections opened", how, err, inner.opened)
		}
	}
}

func TestOtherDatabasesAndReadersAreLetThrough(t *testing.T) {
	for system, how := range map[string]string{"mysql": "sql-deadlock", "postgresql": "sql-readonly", "x": "refused"} {
		service, db := open(t, &database{}, system)
		value := fittest.Sign('t', fittest.Fault{How: how, Point: "bookmarks>db:SELECT:recordsdb/marks"})
		rows, err := db.QueryContext(fittest.Carrying(context.Background(), value), "select 1 from marks")
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		_ = rows.Close()
		if marks := service.Marks(); len(marks) != 0 {
			t.Errorf("%s: %v", how, marks)
		}
	}
}

func TestConnectionsAreRefused(t *testing.T) {
	service, db := open(t, &database{}, "postgresql")
	value := fittest.Sign('t', fittest.Fault{How: "refused", Point: "bookmarks>db:connect:recordsdb"})
	_, err := db.ExecContext(fittest.Carrying(context.Background(), value), update)
	if !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != "dial tcp 127.0.0.1:5432: connect: connection refused" {
		t.Errorf("%v", err)
	}
	if marks := service.Marks(); len(marks) != 1 || marks[0]["fit.fired"] != "refused" {
		t.Errorf("proof %v", marks)
	}
}

func TestAStatementThatItsDriverWantsPreparedIsOneCall(t *testing.T) {
	service, db := open(t, &database{skips: true}, "postgresql")
	value := fittest.Sign('c', fittest.Fault{How: "sql-deadlock-n2", Point: "bookmarks>db:SELECT:recordsdb/marks"})
	ctx, span := service.Provider.Tracer("test").Start(
		fittest.Carrying(context.Background(), value), "request", trace.WithNewRoot())
	for range 3 {
		rows, err := db.QueryContext(ctx, "select 1 from marks where id = $1", 17)
		if err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
	}
	span.End()
	var would, through int
	for _, marks := range service.Marks() {
		would += len(marks["fit.would_fire"]) / len("sql:deadlock")
		through += len(marks["fit.let_through"]) / len("true")
	}
	if would != 2 || through != 1 {
		t.Errorf("%d would fire, %d were let through", would, through)
	}
}

// atOnce is a driver that has nothing to do.
type atOnce struct{ connection }

func (atOnce) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, nil
}

type toAtOnce struct{ *database }

func (toAtOnce) Connect(context.Context) (driver.Conn, error) { return &atOnce{}, nil }

func BenchmarkQueryUnarmed(b *testing.B) {
	of := fitsql.Database{Name: "recordsdb", System: "postgresql"}
	connector := fitsql.Connector(fittest.New(b, "bookmarks").Injector, toAtOnce{&database{}}, of)
	ctx := fittest.OfUser(context.Background())
	connection, err := connector.Connect(ctx)
	if err != nil {
		b.Fatal(err)
	}
	queried := connection.(driver.QueryerContext)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_, _ = queried.QueryContext(ctx, "select name from marks", nil)
	}
}
