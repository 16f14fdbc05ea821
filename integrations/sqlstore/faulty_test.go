package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// errFault is the error of a database that fails on purpose.
var errFault = errors.New("connection reset")

// faults makes statements, begins and commits fail. It asks fail for each, by name.
type faults struct {
	mu   sync.Mutex
	fail func(op string) fault
}

// fault says how an operation fails.
type fault int

const (
	none   fault = iota
	before       // nothing was done
	after        // it was done, and the answer was lost
)

// do runs the operation, unless it fails before. It returns the fault's error, or that
// of the operation.
func (f *faults) do(op string, run func() error, lost func()) error {
	f.mu.Lock()
	how := f.fail(op)
	f.mu.Unlock()
	switch how {
	case before:
		lost()
		return errFault
	case after:
		if err := run(); err != nil {
			return err
		}
		return errFault
	}
	return run()
}

// set changes what fails.
func (f *faults) set(fail func(op string) fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func healthy(string) fault { return none }

// faulty returns d with connections that fail, on the same tables.
func faulty(t *testing.T, d database) (database, *faults) {
	f := &faults{fail: healthy}
	db := sql.OpenDB(connector{d.Driver(), d.dsn, f})
	db.SetMaxOpenConns(4)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	d.DB = db
	return d, f
}

type connector struct {
	driver driver.Driver
	dsn    string
	faults *faults
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	inner, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &conn{inner, c.faults}, nil
}

// conn is a connection that fails. It has the optional interfaces of both drivers.
type conn struct {
	driver.Conn
	faults *faults
}

func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (t driver.Tx, err error) {
	err = c.faults.do("begin", func() (err error) {
		t, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
		return err
	}, func() {})
	if err != nil {
		if t != nil {
			t.Rollback()
		}
		return nil, err
	}
	return &tx{t, c.faults}, nil
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.faults.do("exec", func() (err error) {
		r, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	}, func() {})
	return r, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.faults.do("query", func() (err error) {
		r, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return err
	}, func() {})
	if err != nil && r != nil {
		r.Close()
		r = nil
	}
	return r, err
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

type tx struct {
	driver.Tx
	faults *faults
}

func (t *tx) Commit() error {
	return t.faults.do("commit", t.Tx.Commit, func() { t.Tx.Rollback() })
}
