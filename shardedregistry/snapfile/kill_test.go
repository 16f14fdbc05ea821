package snapfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/kill"
	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// childFile is the variable of the environment that makes the test binary the child of
// TestKilled, and names its file.
const childFile = "SNAPFILE_TEST_CHILD_FILE"

// child saves a registry of keys with one value, and prints the value, again and again.
func child(path string) {
	var r registry
	for i := 1; ; i++ {
		for k := range 500 {
			r.Put(fmt.Sprint(k), i)
		}
		if err := snapfile.Save(path, &r, raw); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// Whenever a process is killed, its file is whole, and not older than what it has
// saved.
func TestKilled(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		path := filepath.Join(t.TempDir(), "a.snap")
		lines := kill.After(t, 1+round, nil, childFile+"="+path)
		saved, err := strconv.Atoi(strings.TrimSpace(lines[len(lines)-1]))
		if err != nil {
			t.Fatalf("the child says %q", lines)
		}
		r, err := snapfile.Load(path, config{}, raw)
		if err != nil {
			t.Fatal(err)
		}
		first, _ := r.Get("0")
		if first < saved || r.Len() != 500 {
			t.Errorf("%d was saved; the file has %d keys and %d", saved, r.Len(), first)
		}
		for k, v := range r.All() {
			if v != first {
				t.Fatalf("%s is %d, and 0 is %d", k, v, first)
			}
		}
		if err := snapfile.Save(path, r, raw); err != nil {
			t.Fatal(err)
		}
		if all := names(t, filepath.Dir(path)); len(all) != 1 && runtime.GOOS != "windows" {
			t.Errorf("after the next Save there are %q", all)
		}
	}
}
