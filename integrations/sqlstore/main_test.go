package sqlstore_test

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		child(os.Getenv(childDriver), dsn) // until it is killed
	}
	code := m.Run()
	stopServer()
	os.Exit(code)
}
