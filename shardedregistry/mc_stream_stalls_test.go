//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// A stream that forgets what it has taken, and so does one that leaves, forgets
// nothing that another needs which a teller is about to seat.
func TestStreamForgetsItsOwn(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(s streamer)
	}{
		{"take", func(s streamer) { s.Drain() }},
		{"take and leave", func(s streamer) { s.Drain(); s.Leave() }},
		{"leave", func(s streamer) { s.Leave() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = "Put(2), where another has stalled ∥ Stream: " + tt.name + ", with another stream"
			mc.Check(t, cfg, func(m *mc.M) {
				r := streamed(with7)
				quick, slow := shardedregistry.OpenStream(r, plenty), shardedregistry.OpenStream(r, plenty)
				shardedregistry.Stored(r, "a", 1)
				doing(m, r, []call{put(2)})
				m.Go(func() { tt.do(quick) })
				m.Final(func() {
					if tt.name == "take" {
						quick.Drain()
						quick.Leave()
					}
					wantAll(m, r, slow, nil, 2)
				})
			})
		})
	}
}
