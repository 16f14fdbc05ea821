package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplaceReadme(t *testing.T) {
	r := read(t,
		"goos: linux\ncommit: 0123\nhost: a machine\ngo: 1.26\ndate: 2026-01-02T03:04:05Z\ncommand: go run ./bench/cmd/bench -quick\n"+
			"state: clock read 20ns\nmachine: cpus=2 others=0.12 probe=10ms\n\n",
		quantiles("CacheSlowKey/load=paced/threads=4x/impl=mutex", 100, 50e6, 51e6),
		quantiles("CacheSlowKey/load=paced/threads=4x/impl=latchfree", 50, 60, 4e6),
		quantiles("CacheSlowKey/load=paced/threads=4x/impl=idle", 20, 25, 4e6),
		lines("CacheHit/keys=100/order=uniform/impl=mutex", 10, 10, 10, 10, 10, 10),
		lines("CacheHit/keys=100/order=uniform/impl=latchfree", 5, 5, 5, 5, 5, 5),
		lines("CacheHit/keys=100/order=uniform/impl=xsync", 4, 4, 4, 4, 4, 4),
		lines("CacheCreate/keys=1000/impl=mutex", 10, 10, 10, 10, 10, 10),
		lines("CacheCreate/keys=1000/impl=latchfree", 20, 20, 20, 20, 20, 20),
		lines("CacheCreate/keys=1000/impl=rwmutex", 16, 16, 16, 16, 16, 16),
		lines("CacheMix/keys=1000/impl=mutex", 10, 10, 10, 10, 10, 10),
		lines("CacheMix/keys=1000/impl=latchfree", 20, 20, 20, 20, 20, 20),
		lines("CacheMix/keys=1000/impl=syncmap", 5, 5, 5, 5, 5, 5),
		lines("CacheMany/keys=1000/impl=latchfree", 20, 20, 20, 20, 20, 20),
		lines("CacheMany/keys=1000/impl=mutex", 1, 1, 1, 20, 20, 20),
		lines("CacheMany/keys=1000/impl=xsync", 1, 1, 1, 20, 20, 20),
	)
	page, err := r.ReplaceReadme("before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(page, "before\n<!-- bench -->\nOne run of `make bench -quick`: a machine; Go 1.26, commit 0123, 2026-01-02T03:04:05;"+
		" clock read 20ns; others took 0.12 processors.\n"), page)
	require.True(t, strings.HasSuffix(page, "<!-- /bench -->\nafter\n"), page)
	require.NotContains(t, page, "\nold\n")
	for _, line := range []string{
		"|||p50|p99.9|p99.99|longest|",
		"|a cache hit while another key is created for 50 ms|latchfree|52.5 ns|–|–|(4.20 ms)|",
		"||mutex|105 ns|–|–|53.5 ms|",
		"||1 CPU, mutex|latchfree||",
		"|a cache hit among 100 keys|10.0 ns|5.00 ns|2.00×|",
		"|creating a value and deleting it|10.0 ns|20.0 ns|0.50×|",
		"4 of 5 comparisons, 4 of them on one CPU. How many times as long it takes as the locked code, or, marked ‡, as another way:\n",
		"|cache: create|1.25–2.00×|",
		"|cache: mix|2.00×|",
		"|cache: mix ‡|4.00×|",
		"1 comparison left out as too noisy, of cache: many.\n",
	} {
		require.Contains(t, page, "\n"+line)
	}
	require.NotContains(t, page, "cache: hit", "what is lost to less is no row")
	for _, bad := range []string{"", "<!-- bench -->\n", "<!-- /bench -->\n<!-- bench -->\n"} {
		_, err := r.ReplaceReadme(bad)
		require.ErrorContains(t, err, "bench: the page has no")
	}
}

func TestWriteReadme_SaysLockedCodeOfLocksAlone(t *testing.T) {
	var text strings.Builder
	r := read(t, lines("CacheMix/impl=mutex", 10, 10, 10, 10, 10, 10), lines("CacheMix/impl=latchfree", 20, 20, 20, 20, 20, 20))
	require.NoError(t, r.WriteReadme(&text))
	require.Contains(t, text.String(), "1 of 1 comparisons, 1 of them on one CPU. How many times as long it takes as the locked code:\n")
	require.NotContains(t, text.String(), "left out")
}

func TestWriteReadme_SaysThatTheMachineWasBusy(t *testing.T) {
	r := readNoisy(t)
	r.Machine = Machine{CPUs: 2, Before: 7}
	var text strings.Builder
	require.NoError(t, r.WriteReadme(&text))
	require.True(t, strings.HasPrefix(text.String(), "**This machine was busy: 7.0 threads"), text.String())
}
