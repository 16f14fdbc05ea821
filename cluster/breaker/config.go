package breaker

import (
	"fmt"
	"strings"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Config holds the settings of a Group. Stream is the only one that must be set.
type Config[K ~string] struct {
	// Group holds the settings of the local breakers. The group calls its OnStateChange
	// as usual, after it has noted the hint.
	Group atomicbreaker.GroupConfig[K]

	// Stream is the name of the stream, and the first token of its subjects. If it does
	// not exist, the group makes it. It must be one word of letters, digits, - and _, of at
	// most 255 bytes.
	Stream string

	// StreamReplicas is the number of servers that store a stream that the group makes.
	// 0 stands for 1.
	StreamReplicas int

	// Quorum is how many other replicas must have reported a key open before this one
	// acts on it. 0 stands for 1.
	Quorum int

	// MaxOpenTimeout bounds how long a hint keeps a key open. 0 stands for 30
	// seconds.
	MaxOpenTimeout time.Duration

	// OnError is told of what hinders the exchange of hints: the engine is away, a
	// message is foreign, the stream has other settings. Nothing else is lost with it.
	// It is called on a goroutine of the group, and must not call Close. A panic in it ends
	// the program, as one in OnStateChange does when a hint has changed a key. Nil ignores
	// errors.
	OnError func(error)
}

// maxName is how long the name of a stream may be: servers end a connection over a subject of 4 KiB.
const maxName = 255

const defaultMaxOpenTimeout = 30 * time.Second

// checked returns c with its defaults, or an error that names the setting that is wrong.
func (c Config[K]) checked() (Config[K], error) {
	switch {
	case c.Stream == "" || !isWord(c.Stream) || len(c.Stream) > maxName:
		return c, fmt.Errorf("breaker: Config.Stream %q: must be 1 to %d letters, digits, - and _", c.Stream, maxName)
	case c.StreamReplicas < 0 || c.StreamReplicas > 5:
		return c, fmt.Errorf("breaker: Config.StreamReplicas %d: must be in 0..5", c.StreamReplicas)
	case c.Quorum < 0:
		return c, fmt.Errorf("breaker: Config.Quorum %d: must not be negative", c.Quorum)
	case c.MaxOpenTimeout < 0:
		return c, fmt.Errorf("breaker: Config.MaxOpenTimeout %v: must not be negative", c.MaxOpenTimeout)
	}
	c.StreamReplicas = max(c.StreamReplicas, 1)
	c.Quorum = max(c.Quorum, 1)
	if c.MaxOpenTimeout == 0 {
		c.MaxOpenTimeout = defaultMaxOpenTimeout
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return c, nil
}

func isWord(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}) < 0
}
