package main

import (
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// funcName returns the name of a case's function.
func funcName(f func(*trial)) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return name[strings.LastIndex(name, ".")+1:]
}

// needsRule reports whether c passes or fails, rather than counting.
func (c *testCase) needsRule() bool { return c.name != "hit" && c.name != "capturingHit" }

func TestCasesAreExplained(t *testing.T) {
	docs, err := comments()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, c := range cases() {
		assert.Equal(t, c.name, funcName(c.run))
		assert.Equal(t, c.needsRule(), strings.Contains(docs[c.name], "*Pass*: "), "%s: what is a pass?", c.name)
		assert.False(t, seen[c.name] || seen[c.title], "%s: two have this name or title", c.name)
		seen[c.name], seen[c.title] = true, true
	}
}

// A peer does what a feature asks, or says why not.
func TestPeersLackWhatTheyCannot(t *testing.T) {
	lacks := func(p *peer, f feature) bool {
		_, ok := p.lacks[f]
		return ok
	}
	for _, p := range peers {
		c := p.open(config[string, *engine]{})
		_, isRanger := c.(ranger)
		_, isCloser := c.(closer)
		_, isLessor := c.(lessor)
		_, isCapturer := c.(capturer)
		assert.Equal(t, lacks(p, loops), !isRanger, "%s: loops", p.name)
		assert.Equal(t, lacks(p, closes), !isCloser, "%s: closes", p.name)
		assert.Equal(t, lacks(p, leases), !isLessor, "%s: leases", p.name)
		assert.Equal(t, lacks(p, captures), !isCapturer, "%s: captures", p.name)
		_, isRefresher := c.(refresher)
		_, isBatcher := c.(batcher)
		_, isExpirer := c.(expirer)
		_, isPeeker := c.(peeker)
		_, isWaiter := c.(waiter)
		_, isReloader := c.(reloader)
		_, isClearer := c.(clearer)
		assert.Equal(t, lacks(p, refreshes), !isRefresher, "%s: refreshes", p.name)
		assert.Equal(t, lacks(p, batches), !isBatcher, "%s: batches", p.name)
		assert.Equal(t, lacks(p, expiry), !isExpirer, "%s: expiry", p.name)
		assert.Equal(t, lacks(p, peeks), !isPeeker, "%s: peeks", p.name)
		assert.Equal(t, lacks(p, waiting), !isWaiter, "%s: waiting", p.name)
		assert.Equal(t, lacks(p, reloads), !isReloader, "%s: reloads", p.name)
		assert.Equal(t, lacks(p, clears), !isClearer, "%s: clears", p.name)
		assert.Equal(t, lacks(p, pairKeys), p.pairs == nil, "%s: pairs", p.name)
		for f, why := range p.lacks {
			assert.Equal(t, f == stops, why == "", "%s: why no %s", p.name, f)
		}
	}
}

func TestByGroup(t *testing.T) {
	var all []string
	for _, c := range groups[1].cases {
		all = append(all, c.name)
	}
	before, title := groups[0].cases[0].name, "all of *"+groups[1].title+"*"
	assert.Equal(t, []string{before, title, "x"}, byGroup(append(append([]string{before}, all...), "x")))
	assert.Equal(t, append([]string{before}, all[1:]...), byGroup(append([]string{before}, all[1:]...)))
	assert.Equal(t, all[:2], byGroup(all[:2]))
}

func TestFormat(t *testing.T) {
	c, other := groups[0].cases[0], groups[1].cases[0]
	results := map[job]outcome{
		{c, peers[0]}:     {Status: pass, Rounds: 12345},
		{c, peers[1]}:     {Status: fail, Note: "went wrong"},
		{c, peers[2]}:     {Status: hang, Note: "a <b> waits"},
		{c, peers[3]}:     {Status: fail, Note: "went wrong"},
		{other, peers[0]}: {Status: count, Note: "3"},
		{other, peers[1]}: {Status: na, Note: "no such thing"},
		{other, peers[2]}: {Status: pass, Note: "slowly"},
	}
	page, err := format(results, map[string]string{peers[0].name: "v1"})
	require.NoError(t, err)
	for _, line := range []string{
		"| " + c.title + " | pass in 12,345 | **fail** [1](#observed) | **hang** [2](#observed) | **fail** [1](#observed) | | | | |\n",
		"| " + other.title + " | 3 | n/a | pass [3](#observed) | | | | | |\n",
		"1. " + c.title + ": " + peers[1].name + ", " + peers[3].name + ": went wrong.\n",
		"2. " + c.title + ": " + peers[2].name + ": a &lt;b> waits.\n",
		"3. " + other.title + ": " + peers[2].name + ": slowly.\n",
		"- **" + peers[1].name + "**: no such thing (" + other.name + ").\n",
		"| " + peers[0].name + " | v1 |",
	} {
		assert.Contains(t, string(page), line)
	}
	assert.NotContains(t, string(page), groups[2].title, "nothing of it was run")
	for range 10 {
		again, err := format(results, map[string]string{peers[0].name: "v1"})
		require.NoError(t, err)
		require.Equal(t, string(page), string(again))
	}
}

// The published page has the rows, columns and versions of this program. It is
// rewritten by go run . -o ../../oncecache/COMPARISON.md.
func TestPageIsCurrent(t *testing.T) {
	text, err := os.ReadFile("../../oncecache/COMPARISON.md")
	require.NoError(t, err)
	page := string(text)
	contains := func(want string) {
		t.Helper()
		assert.True(t, strings.Contains(page, want), "not there: %s", want) // Contains would print the page
	}
	docs, err := comments()
	require.NoError(t, err)
	for _, c := range cases() {
		contains("\n| " + c.title + " |")
		contains("(`" + c.name + "`). " + docs[c.name])
	}
	linked := versions()
	for _, p := range peers {
		if p.module != "" { // the standard library's is that of the Go that ran it
			contains("| " + p.name + " | " + linked[p.name] + " | " + p.uses)
		}
	}
	for line := range strings.Lines(page) {
		assert.NotContains(t, line, "| |  |", "a cell is empty")
	}
}
