package snapfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// A service that starts with what it knew.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	type quota struct{ Limit, Used int }
	config := shardedregistry.Config[string, quota]{}
	format := snapfile.Format[string, quota]{} // JSON
	path := filepath.Join(dir, "quotas.snap")

	start := func() *shardedregistry.Registry[string, quota] {
		r, err := snapfile.Load(path, config, format)
		if errors.Is(err, fs.ErrNotExist) { // the first start
			r, err = shardedregistry.New(config)
		}
		if err != nil {
			panic(err)
		}
		return r
	}
	quotas := start()
	quotas.Put("ann", quota{Limit: 10})
	quotas.Update("ann", func(q quota) (quota, error) { q.Used++; return q, nil })
	if err := snapfile.Save(path, quotas, format); err != nil {
		panic(err)
	}

	quotas = start()
	fmt.Println(quotas.Lookup("ann"))
	// Output: {ann {10 1} 2} true
}

func ExampleRead() {
	var r shardedregistry.Registry[string, string]
	r.Put("ann", "admin")
	format := snapfile.Format[string, string]{Keys: snapfile.String[string]{}, Values: snapfile.String[string]{}}
	var file bytes.Buffer
	if err := snapfile.Write(&file, &r, format); err != nil {
		panic(err)
	}
	damaged := bytes.Replace(file.Bytes(), []byte("admin"), []byte("root!"), 1)

	_, err := snapfile.Read(bytes.NewReader(damaged), shardedregistry.Config[string, string]{}, format)
	fmt.Println(err)
	// Output: snapfile: corrupt at byte 32: the checksum does not match
}
