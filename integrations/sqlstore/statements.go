package sqlstore

import (
	"strconv"
	"strings"
)

// statements are the texts for one dialect and prefix. In the texts below, # stands for
// the prefix and each ? for the next parameter.
type statements struct {
	schema []string // each may be executed again

	// exists asks whether there is a table.
	exists string

	// guard returns the epoch and holder, and keeps both until the transaction ends. In
	// PostgreSQL, transactions share that lock, and a claim waits for all of them. In
	// SQLite an UPDATE that changes nothing gets the only write lock: a transaction that
	// reads first might fail to get it later.
	guard string

	claim, version                                    string
	find, latest, oldest                              string
	start, replace, extend, seal, abort, applied      string
	unsealed, pruneEntries, pruneChangesets, insertTo string
	heads, entries                                    string
}

// schemaVersion is what Migrate makes, and what this version of the package works with.
const schemaVersion = 1

// wholeColumn is the column applied of a changeset that is applied to the end; the
// other numbers there are below 1<<62.
const wholeColumn = 1<<63 - 1

func newStatements(d Dialect, prefix string) statements {
	s := statements{
		claim:           `UPDATE #store SET epoch = epoch + 1, holder = ? WHERE id = 1 RETURNING epoch`,
		version:         `SELECT version FROM #store WHERE id = 1`,
		find:            `SELECT ordinal, previous, entries, last, sealed, aborted, reason, applied FROM #changesets WHERE id = ?`,
		latest:          `SELECT ordinal, id FROM #changesets ORDER BY ordinal DESC LIMIT 1`,
		oldest:          `SELECT ordinal FROM #changesets ORDER BY ordinal LIMIT 1`,
		start:           `INSERT INTO #changesets (ordinal, id, previous) VALUES (?, ?, ?)`,
		replace:         `DELETE FROM #changesets WHERE ordinal = ?`,
		insertTo:        `INSERT INTO #entries (ordinal, seq, value) VALUES `,
		extend:          `UPDATE #changesets SET entries = entries + ?, last = ? WHERE ordinal = ?`,
		seal:            `UPDATE #changesets SET sealed = TRUE WHERE ordinal = ?`,
		abort:           `UPDATE #changesets SET aborted = TRUE, reason = ? WHERE ordinal = ?`,
		applied:         `UPDATE #changesets SET applied = ? WHERE ordinal = ?`,
		unsealed:        `SELECT ordinal FROM #changesets WHERE ordinal >= ? OR NOT sealed ORDER BY ordinal LIMIT 1`,
		pruneEntries:    `DELETE FROM #entries WHERE ordinal < ?`,
		pruneChangesets: `DELETE FROM #changesets WHERE ordinal < ?`,
		heads:           `SELECT ordinal, id, previous, entries, last, sealed, aborted, reason, applied FROM #changesets WHERE ordinal > ? ORDER BY ordinal LIMIT 64`,
		entries:         `SELECT seq, value FROM #entries WHERE ordinal = ? AND seq <= ? ORDER BY seq`,
	}
	ordinal, blob, rowid := "INTEGER", "BLOB", " WITHOUT ROWID" // of SQLite, an INTEGER key is the rowid
	if d == PostgreSQL {
		ordinal, blob, rowid = "BIGINT", "BYTEA", ""
		s.exists = `SELECT to_regclass(?) IS NOT NULL`
		s.guard = `SELECT epoch, holder FROM #store WHERE id = 1 FOR SHARE`
		s.find += " FOR UPDATE"
	} else {
		s.exists = `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)`
		s.guard = `UPDATE #store SET epoch = epoch WHERE id = 1 RETURNING epoch, holder`
	}
	s.schema = []string{
		`CREATE TABLE IF NOT EXISTS #store (
			id INTEGER PRIMARY KEY CHECK (id = 1),
			version BIGINT NOT NULL,
			epoch BIGINT NOT NULL,
			holder TEXT NOT NULL)`,
		`INSERT INTO #store (id, version, epoch, holder) VALUES (1, ` + strconv.Itoa(schemaVersion) + `, 0, '') ON CONFLICT (id) DO NOTHING`,
		`CREATE TABLE IF NOT EXISTS #changesets (
			ordinal ` + ordinal + ` PRIMARY KEY,
			id TEXT NOT NULL UNIQUE,
			previous TEXT NOT NULL,
			entries BIGINT NOT NULL DEFAULT 0,
			last BIGINT NOT NULL DEFAULT 0,
			sealed BOOLEAN NOT NULL DEFAULT FALSE,
			aborted BOOLEAN NOT NULL DEFAULT FALSE,
			reason TEXT NOT NULL DEFAULT '',
			applied BIGINT NOT NULL DEFAULT 0)`,
		`CREATE TABLE IF NOT EXISTS #entries (
			ordinal BIGINT NOT NULL,
			seq BIGINT NOT NULL,
			value ` + blob + ` NOT NULL,
			PRIMARY KEY (ordinal, seq))` + rowid,
	}
	finish := func(text *string) { *text = parameters(d, strings.ReplaceAll(*text, "#", prefix)) }
	for i := range s.schema {
		finish(&s.schema[i])
	}
	for _, text := range []*string{
		&s.exists, &s.guard, &s.claim, &s.version, &s.find, &s.latest, &s.oldest, &s.start, &s.replace, &s.extend, &s.seal,
		&s.abort, &s.applied, &s.unsealed, &s.pruneEntries, &s.pruneChangesets, &s.insertTo, &s.heads, &s.entries,
	} {
		finish(text)
	}
	return s
}

// parameters returns the text with the parameters as the dialect writes them.
func parameters(d Dialect, text string) string {
	if d != PostgreSQL {
		return text
	}
	var b strings.Builder
	n := 0
	for _, r := range text {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// maxRows bounds the rows of one INSERT, so that its parameters stay below what both
// databases allow: 32,766 in SQLite, 65,535 in PostgreSQL.
const maxRows = 500

// insert returns the INSERT of n entries.
func (s *statements) insert(d Dialect, n int) string {
	return s.insertTo + parameters(d, strings.Repeat("(?, ?, ?), ", n-1)+"(?, ?, ?)")
}
