//go:build !linux

package sqlstore_test

// startServer starts none: only Linux ends it with the process, however that ends.
func startServer() (dsn, reason string, err error) {
	return "", "no PostgreSQL server: set " + postgresVariable + " to the address of one", nil
}

func stopServer() {}
