package fitsql

import (
	"context"
	"database/sql/driver"
	"errors"
)

// conn passes on all that a driver's connection may or may not do, as database/sql would find it there.
type conn struct {
	driver.Conn
	of   *connector
	lost bool // an injected loss has closed it
	// passed is a statement that has passed its point and that the driver then wanted prepared: database/sql
	// comes back with it at once, and it is one call.
	passed string
}

// Raw returns the driver's own connection, for what (*sql.Conn).Raw is given.
func (c *conn) Raw() driver.Conn { return c.Conn }

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	inner, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip // it is prepared then, and passes its point there
	}
	if c.of.injector.Armed(ctx) {
		if err := c.passStatement(ctx, query); err != nil {
			return nil, err
		}
	}
	answer, err := inner.QueryContext(ctx, query, args)
	if err == driver.ErrSkip {
		c.passed = query
	}
	return answer, err
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	inner, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if c.of.injector.Armed(ctx) {
		if err := c.passStatement(ctx, query); err != nil {
			return nil, err
		}
	}
	answer, err := inner.ExecContext(ctx, query, args)
	if err == driver.ErrSkip {
		c.passed = query
	}
	return answer, err
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	inner, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	made := &stmt{Stmt: inner, of: c, query: query, passed: c.passed == query && query != ""}
	c.passed = ""
	return made, nil
}

func (c *conn) prepare(ctx context.Context, query string) (driver.Stmt, error) {
	if inner, ok := c.Conn.(driver.ConnPrepareContext); ok {
		return inner.PrepareContext(ctx, query)
	}
	return c.Conn.Prepare(query)
}

func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if inner, ok := c.Conn.(driver.ConnBeginTx); ok {
		return inner.BeginTx(ctx, options)
	}
	if options.Isolation != 0 || options.ReadOnly {
		return nil, errors.New("sql: driver does not support non-default isolation level or read-only transactions")
	}
	//lint:ignore SA1019 what database/sql does for an old driver
	return c.Conn.Begin()
}

func (c *conn) Ping(ctx context.Context) error {
	if inner, ok := c.Conn.(driver.Pinger); ok {
		return inner.Ping(ctx)
	}
	return nil
}

func (c *conn) ResetSession(ctx context.Context) error {
	if c.lost {
		return driver.ErrBadConn
	}
	if inner, ok := c.Conn.(driver.SessionResetter); ok {
		return inner.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	if inner, ok := c.Conn.(driver.Validator); ok && !c.lost {
		return inner.IsValid()
	}
	return !c.lost
}

func (c *conn) Close() error {
	if c.lost {
		return nil
	}
	return c.Conn.Close()
}

func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	if inner, ok := c.Conn.(driver.NamedValueChecker); ok {
		return inner.CheckNamedValue(value)
	}
	return driver.ErrSkip // then database/sql does as by default
}

type stmt struct {
	driver.Stmt
	of    *conn
	query string
	// passed: its first execution has passed the point already.
	passed bool
}

// pass returns the error that ends the statement, or nil to execute it.
func (s *stmt) pass(ctx context.Context) error {
	if s.passed {
		s.passed = false
		return nil
	}
	if !s.of.of.injector.Armed(ctx) {
		return nil
	}
	return s.of.passStatement(ctx, s.query)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	if inner, ok := s.Stmt.(driver.StmtQueryContext); ok {
		return inner.QueryContext(ctx, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 what database/sql does for an old driver
	return s.Stmt.Query(values)
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	return s.exec(ctx, args)
}

func (s *stmt) exec(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if inner, ok := s.Stmt.(driver.StmtExecContext); ok {
		return inner.ExecContext(ctx, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 what database/sql does for an old driver
	return s.Stmt.Exec(values)
}

func (s *stmt) CheckNamedValue(value *driver.NamedValue) error {
	if inner, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return inner.CheckNamedValue(value)
	}
	return s.of.CheckNamedValue(value)
}

// ColumnConverter is what old drivers have in place of CheckNamedValue.
func (s *stmt) ColumnConverter(column int) driver.ValueConverter {
	//lint:ignore SA1019 they do
	if inner, ok := s.Stmt.(driver.ColumnConverter); ok {
		return inner.ColumnConverter(column)
	}
	return driver.DefaultParameterConverter
}

func unnamed(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, arg := range args {
		if arg.Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = arg.Value
	}
	return values, ctx.Err()
}
