// Package fitsql makes the statements and connections of a database/sql driver injection points:
//
//	db := sql.OpenDB(fitsql.Connector(injector, connector, fitsql.Database{Name: "shop", System: "postgresql"}))
//
// It stands beneath OpenTelemetry's instrumentation (otelsql.OpenDB(fitsql.Connector(…))), whose span
// then holds the proof. What PostgreSQL says in a bad state is said by PostgreSQL itself: in place of
// the caller's statement the server executes one that raises the error, so the error is the driver's
// own, and the transaction is aborted as it would be. Of another database there is none of these.
package fitsql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"strings"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// Database is what a driver's connector does not tell.
type Database struct {
	Name    string // part of the names of its points, as OpenTelemetry's db.namespace has it
	System  string // "postgresql", or whatever OpenTelemetry's db.system.name has
	Address string // HOST:PORT, for the error of a connection that is refused; may be empty
}

func (d Database) peer() string {
	if d.Name == "" || strings.Trim(d.Name, "0123456789") == "" {
		return d.System
	}
	return d.Name
}

func (d Database) unconnected(kind fit.Kind) error {
	host, port, err := net.SplitHostPort(d.Address)
	if err != nil {
		host, port = d.peer(), "0"
	}
	return fit.Unconnected(kind, host, port)
}

// connecting tells whether a kind is a connection that cannot be made; of a name only where it is known.
func (d Database) connecting(kind fit.Kind) bool {
	host, _, _ := net.SplitHostPort(d.Address)
	return kind.Connecting(host)
}

// Connector wraps a driver's connector. A nil injector gives back what it was given.
func Connector(injector *fit.Injector, inner driver.Connector, of Database) driver.Connector {
	if injector == nil {
		return inner
	}
	injector.Reaches("db:*")
	injector.Reaches("library:database/sql")
	return &connector{injector, inner, of}
}

type connector struct {
	injector *fit.Injector
	inner    driver.Connector
	database Database
}

func (c *connector) Driver() driver.Driver { return c.inner.Driver() }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.injector.Armed(ctx) {
		if err := c.passConnection(ctx); err != nil {
			return nil, err
		}
	}
	inner, err := c.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, of: c}, nil
}

func (c *connector) passConnection(ctx context.Context) error {
	fault := c.injector.Pass(ctx, fit.Call{
		Point: func(service string) string { return fit.ConnectPoint(service, c.database.peer()) },
		Can:   func(injection fit.Injection) bool { return c.database.connecting(injection.Kind) },
	})
	if fault == nil {
		return nil
	}
	err := c.failure(ctx, fault)
	fault.End(err)
	return err
}

func (c *connector) failure(ctx context.Context, fault *fit.Fault) error {
	switch fault.Kind {
	case fit.Delay:
		return fault.Wait(ctx)
	case fit.Error:
		return c.database.unconnected(fit.Refused)
	}
	return c.database.unconnected(fault.Kind)
}

// states are what PostgreSQL says, by kind: SQLSTATE and message.
var states = map[fit.Kind][2]string{
	"sql:deadlock":      {"40P01", "deadlock detected"},
	"sql:serialization": {"40001", "could not serialize access due to concurrent update"},
	"sql:lost":          {"57P01", "terminating connection due to administrator command"},
	"sql:readonly":      {"25006", "cannot execute %s in a read-only transaction"},
}

// raising is the statement that raises the error of this kind in the server.
func raising(kind fit.Kind, statement string) string {
	state, message := states[kind][0], states[kind][1]
	if kind == "sql:readonly" {
		message = fmt.Sprintf(message, verbOf(statement))
	}
	return fmt.Sprintf("DO $fit$ BEGIN RAISE EXCEPTION USING ERRCODE = '%s', MESSAGE = '%s', "+
		"HINT = 'fault injected'; END $fit$", state, message)
}

func verbOf(statement string) string {
	name := fit.DatabasePoint("", statement, "") // unknown>db:VERB:…
	_, name, _ = strings.Cut(name, ":")
	verb, _, _ := strings.Cut(name, ":")
	return verb
}

// passStatement returns the error that ends the statement, or nil to execute it.
func (c *conn) passStatement(ctx context.Context, statement string) error {
	database := c.of.database
	fault := c.of.injector.Pass(ctx, fit.Call{
		Point: func(service string) string { return fit.DatabasePoint(service, statement, database.peer()) },
		Can: func(injection fit.Injection) bool {
			_, known := states[injection.Kind]
			reads := injection.Kind == "sql:readonly" && verbOf(statement) == "SELECT"
			return known && database.System == "postgresql" && !reads
		},
	})
	if fault == nil {
		return nil
	}
	err := c.carryOut(ctx, fault, statement)
	fault.End(err)
	return err
}

func (c *conn) carryOut(ctx context.Context, fault *fit.Fault, statement string) error {
	switch fault.Kind {
	case fit.Delay:
		return fault.Wait(ctx)
	case fit.Error:
		return c.of.database.unconnected(fit.Refused)
	}
	err := c.execute(ctx, raising(fault.Kind, statement))
	if fault.Kind == "sql:lost" {
		c.lost = true
		_ = c.Conn.Close()
	}
	if err == nil {
		return driver.ErrBadConn // the server did not raise it: then the connection is not to be trusted
	}
	return err
}

// execute runs a statement of ours on the driver's own connection.
func (c *conn) execute(ctx context.Context, statement string) error {
	if executor, ok := c.Conn.(driver.ExecerContext); ok {
		_, err := executor.ExecContext(ctx, statement, nil)
		if err != driver.ErrSkip {
			return err
		}
	}
	prepared, err := c.prepare(ctx, statement)
	if err != nil {
		return err
	}
	defer func() { _ = prepared.Close() }()
	_, err = (&stmt{Stmt: prepared, of: c}).exec(ctx, nil)
	return err
}
