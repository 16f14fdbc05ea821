//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
)

// personal is what a trail has of a person: a text that only the person's key opens.
type personal struct {
	Subject string // names the key, and must itself say nothing about the person
	Sealed  []byte
}

// keys are kept outside the trail and its backups, in a database or a key service.
type keys map[string]cipher.AEAD

// seal encrypts a text with the key of a subject, which it makes for a new one.
func (k keys) seal(subject, text string) personal {
	if k[subject] == nil {
		key := make([]byte, 32)
		rand.Read(key)
		block, err := aes.NewCipher(key)
		if err != nil {
			log.Fatal(err)
		}
		if k[subject], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			log.Fatal(err)
		}
	}
	return personal{subject, k[subject].Seal(nil, nil, []byte(text), []byte(subject))}
}

// open returns the text, or what is left to say when the key is destroyed.
func (k keys) open(p personal) string {
	if k[p.Subject] == nil {
		return "(erased)"
	}
	text, err := k[p.Subject].Open(nil, nil, p.Sealed, []byte(p.Subject))
	if err != nil {
		return "(damaged)"
	}
	return string(text)
}

// An entry of a chained trail cannot be removed: every later line depends on it. So a trail has
// personal data only encrypted, with a key for each person, and to erase a person's data is to
// destroy the key. The chain, and every backup of it, still verifies.
func Example_erasePersonalData() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, ctx, keys := filepath.Join(dir, "audit"), context.Background(), keys{}
	j, err := journal.Open[personal](path, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	tracker := cowchangeset.MustNew(cowchangeset.Config[personal]{Store: j})
	tracker.Start(ctx)
	tracker.Record(keys.seal("s-1", "ann@example.com signs up"))
	tracker.Record(keys.seal("s-2", "bob@example.com signs up"))
	anchor := j.Hash()

	delete(keys, "s-1") // Ann asks for it

	for _, e := range tracker.Trail().All() {
		fmt.Println(e.Subject, keys.open(e))
	}
	j.Close()
	report, err := reader.Verify(path, anchor)
	fmt.Println(report.Entries, "entries, unchanged:", err == nil)
	// Output:
	// s-1 (erased)
	// s-2 bob@example.com signs up
	// 2 entries, unchanged: true
}
