// Command hitrates prints which part of the look-ups in generated traces hits, for caches of
// the same number of entries: oncecache, whose policy is SIEVE; otter, whose policy is
// W-TinyLFU; and an LRU list. Seeds are fixed, and each cache evicts on the goroutine that
// adds, so every run prints the same for ours and the list.
package main

import (
	"fmt"
	"os"
	"text/tabwriter"
)

func main() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "trace\tentries\t")
	for _, p := range policies {
		fmt.Fprintf(w, "%s\t", p.name)
	}
	fmt.Fprintln(w)
	for _, t := range traces() {
		for _, entries := range t.entries {
			fmt.Fprintf(w, "%s\t%d\t", t.name, entries)
			for _, p := range policies {
				fmt.Fprintf(w, "%.1f %%\t", 100*hitRate(p.make(entries), t.keys(entries)))
			}
			fmt.Fprintln(w)
		}
	}
	w.Flush()
}
