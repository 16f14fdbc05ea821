// Package engine is a SQLite database with the changes that were applied to it.
package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"modernc.org/sqlite" // the driver, in pure Go
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/latchfree/latchfree/oncecache"
)

// Prefixes of URLs. Two engines of one URL in memory share nothing, as those of
// SQLAlchemy do.
const (
	Memory = "memory:"
	File   = "file:"
)

// busyTimeout is how long a statement waits for other processes.
const busyTimeout = 5 * time.Second

// ErrURL is the error of a URL that is neither.
var ErrURL = errors.New("database is neither memory:NAME nor file:PATH")

// Engine is an open database.
type Engine struct {
	URL    string
	Number uint64 // unique in the process

	db       *sql.DB
	migrated oncecache.Cache[int, struct{}] // by schema version
	onClose  func(*Engine)
}

// Open opens a database and checks that it answers. OnClose, unless nil, is called by
// Close.
func Open(ctx context.Context, address string, number uint64, onClose func(*Engine)) (*Engine, error) {
	source := ":memory:"
	if path, ok := strings.CutPrefix(address, File); ok && path != "" {
		source = (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(),
			RawQuery: fmt.Sprintf("_pragma=busy_timeout(%d)", busyTimeout.Milliseconds()) + "&_pragma=journal_mode(WAL)&_txlock=immediate"}).String()
	} else if name, ok := strings.CutPrefix(address, Memory); !ok || name == "" {
		return nil, fmt.Errorf("%w: %q", ErrURL, address)
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", address, err)
	}
	// A connection in memory is a database of its own: there is one, for ever.
	if source == ":memory:" {
		db.SetMaxOpenConns(1)
		db.SetMaxIdleConns(1)
	}
	if err := ping(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", address, err), db.Close())
	}
	return &Engine{URL: address, Number: number, db: db, onClose: onClose}, nil
}

// ping connects. Processes that give a new file its journal mode at once can be refused,
// whatever the busy timeout, since SQLite sees a deadlock.
func ping(ctx context.Context, db *sql.DB) error {
	for began := time.Now(); ; {
		err := db.PingContext(ctx)
		var refused *sqlite.Error
		if !errors.As(err, &refused) || refused.Code() != sqlite3.SQLITE_BUSY || time.Since(began) > busyTimeout {
			return err
		}
		select {
		case <-time.After(time.Millisecond + rand.N(10*time.Millisecond)):
		case <-ctx.Done():
			return err
		}
	}
}

// InMemory reports whether Close drops the data.
func (e *Engine) InMemory() bool { return strings.HasPrefix(e.URL, Memory) }

// detach makes a statement end by itself. One that is interrupted may take its connection
// with it, and a database in memory with that.
func (e *Engine) detach(ctx context.Context) context.Context {
	if e.InMemory() {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// Close closes the database. Nobody may use it any more.
func (e *Engine) Close() error {
	err := e.db.Close()
	if e.onClose != nil {
		e.onClose(e)
	}
	return err
}
