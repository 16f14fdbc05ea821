package peers

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/oncecache"
)

// The rows of comingPage, each of which makes the same calls through a peer's cache and ours, and
// compares what came of them.
const comingPage = "../../docs/coming-from-caches.md"

var comingRows = map[string][]row{
	"golang.org/x/sync/singleflight": singleflightRows,
	"maypok86/otter v2":              otterRows,
	"dgraph-io/ristretto v2":         ristrettoRows,
	"hashicorp/golang-lru v2":        lruRows,
	"jellydator/ttlcache v3":         ttlcacheRows,
	"patrickmn/go-cache":             goCacheRows,
}

func TestComingFrom(t *testing.T) {
	for peer, rows := range comingRows {
		t.Run(peer, func(t *testing.T) { runRows(t, rows) })
	}
}

// The page has a section for each peer, with a row for each subtest, and a subtest for each row: the
// last cell of a row names subtests of its section, and other tests of this package.
func TestComingFromNamesItsTests(t *testing.T) {
	text, err := os.ReadFile(comingPage)
	require.NoError(t, err)
	tests := functions(t, "*_test.go")
	var sections []string
	for _, section := range heading.Split(string(text), -1)[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections = append(sections, title)
		rows, shown := comingRows[title], map[string]bool{}
		for _, cells := range tableRows(t, body) {
			names := inTicks.FindAllStringSubmatch(cells[2], -1)
			assert.NotEmpty(t, names, "%s: the row of %q names no test", title, cells[0])
			for _, m := range names {
				name := m[1]
				if strings.HasPrefix(name, "Test") {
					assert.Contains(t, tests, name, "%s", title)
					continue
				}
				assert.False(t, shown[name], "%s: two rows name %q", title, name)
				shown[name] = true
				assert.True(t, hasRow(rows, name), "%s: there is no subtest %q", title, name)
			}
		}
		for _, r := range rows {
			assert.True(t, shown[r.name], "%s: no row names the subtest %q", title, r.name)
		}
	}
	for peer := range comingRows {
		assert.Contains(t, sections, peer)
	}
	assert.Len(t, sections, len(comingRows))
}

// What is code in the cells are names that there are: those of ours are declared by oncecache, and
// those of peers are used by the tests.
func TestComingFromNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(comingPage)
	require.NoError(t, err)
	ours, peers := identifiers(t, "../../oncecache/*.go"), identifiers(t, "coming*_test.go")
	checked := 0
	for _, section := range heading.Split(string(text), -1)[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for _, cells := range tableRows(t, body) {
			for _, n := range namesIn(cells[0]) {
				assert.True(t, peers[n], "%s: no test uses %s", title, n)
			}
			for _, n := range namesIn(cells[1]) {
				assert.True(t, ours[n], "%s: %s is nothing of oncecache", title, n)
				checked++
			}
		}
	}
	assert.Greater(t, checked, 60, "does the test still see the tables?")
}

// ourCache returns a cache of ours that is closed when the row ends.
func ourCache[V any](t *testing.T, config oncecache.Config[string, V]) *oncecache.Cache[string, V] {
	t.Helper()
	c, err := oncecache.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

// has reports whether c has k, which is no use of it.
func has[V any](c *oncecache.Cache[string, V], k string) bool {
	_, ok := c.Peek(k)
	return ok
}

func sortedKeys[V any](c *oncecache.Cache[string, V]) []string { return slices.Sorted(c.Keys()) }

// crowd makes n calls, each when all before are waiting or have returned, and returns how they ended.
func crowd(n int, call func(i int) (int, error)) []string {
	all := make([]string, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { all[i] = ending(func() (int, error) { return call(i) }) })
		synctest.Wait()
	}
	calls.Wait()
	return all
}

// How a call ended.
const (
	hasValue = "value"
	hasError = "error"
	panicked = "panic"
	exited   = "exit"
)

func ending(call func() (int, error)) (how string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		how = exited
		defer func() {
			if recover() != nil {
				how = panicked
			}
		}()
		if _, err := call(); err != nil {
			how = hasError
		} else {
			how = hasValue
		}
	}()
	<-done
	return how
}

// slowly is a function that takes a second, and counts its calls.
func slowly(calls *int, end func() (int, error)) func() (int, error) {
	return func() (int, error) {
		*calls++
		time.Sleep(time.Second)
		return end()
	}
}

func seven() (int, error)  { return 7, nil }
func failed() (int, error) { return 0, errCall }
func panicky() (int, error) {
	panic(errCall)
}
func exiting() (int, error) { runtime.Goexit(); return 0, nil }

// lasting is a value that says how long it is good.
type lasting struct {
	v   int
	ttl time.Duration
}

// byItself are settings for values that say so.
func byItself() oncecache.Config[string, lasting] {
	return oncecache.Config[string, lasting]{TTLFunc: func(_ string, l lasting) time.Duration { return l.ttl }}
}

// removals is what listeners were told.
type removals struct {
	mu  sync.Mutex
	all []string
}

func (r *removals) add(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, what)
}

// sorted returns what was told when nothing goes on any more.
func (r *removals) sorted() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.all))
}
