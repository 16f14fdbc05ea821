package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Claim takes the tables over for one tracker. It returns ErrClaimed if this Store was
// claimed already, unless Release has undone that, and ErrNotMigrated if Migrate was not called.
// Another Store, as that of another process, loses the tables: its later calls that
// write fail with ErrFenced. A process that was killed needs no Release. Claim panics if
// ctx is nil.
//
// Claim is blocking: it waits for the database and for all transactions of other
// Stores on the tables, at most for Options.ClaimTimeout, and no longer than ctx. It
// takes effect when its transaction commits. If it fails, others may have lost the tables nevertheless.
func (s *Store[E]) Claim(ctx context.Context) error {
	needContext(ctx, "Claim")
	s.claiming.Lock()
	defer s.claiming.Unlock()
	if s.epoch.Load() != 0 {
		return ErrClaimed
	}
	ctx, cancel := context.WithTimeout(ctx, s.claimTimeout)
	defer cancel()
	epoch, err := s.nextEpoch(ctx)
	if err != nil {
		return failed(ctx, "Claim", err)
	}
	s.epoch.Store(-epoch)
	return nil
}

// nextEpoch makes sure that the tables are as they should be, and takes an epoch.
func (s *tables) nextEpoch(ctx context.Context) (epoch int64, err error) {
	if err := s.migrated(ctx, s.db); err != nil {
		return 0, err
	}
	tx, err := s.db.BeginTx(ctx, s.isolation()) // or SQLite would commit when the row is closed, and hide why it could not
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // nothing after a commit
	switch err := tx.QueryRowContext(ctx, s.texts.claim, s.holder).Scan(&epoch); {
	case errors.Is(err, sql.ErrNoRows):
		return 0, fmt.Errorf("%w: %sstore has no row", ErrNotMigrated, s.prefix)
	case err != nil:
		return 0, err
	case epoch <= 0:
		return 0, fmt.Errorf("%w: epoch %d", ErrCorrupt, epoch)
	}
	return epoch, tx.Commit()
}

// Release undoes Claim, as a Resume that fails needs it: this Store writes nothing until
// the next Claim. Once the tracker has written, or tried to, Release does nothing: that
// tracker may go on, and beside another one its entries would be taken for repeated ones
// and lost. For another tracker, make another Store. Release does not use the database.
//
// Release is blocking: it waits for a Claim of this Store. It takes effect when the
// epoch is cleared.
func (s *Store[E]) Release() {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	if epoch := s.epoch.Load(); epoch < 0 {
		s.epoch.CompareAndSwap(epoch, 0) // unless a call has come meanwhile
	}
}

// use returns the epoch of the claim, which the store keeps from now on, or 0 if there is none.
func (s *tables) use() int64 {
	epoch := s.epoch.Load()
	for epoch < 0 && !s.epoch.CompareAndSwap(epoch, -epoch) {
		epoch = s.epoch.Load()
	}
	return max(epoch, -epoch)
}
