package runner

import (
	"fmt"
	"io"
	"os"
	"time"
)

// plainEvery is how often progress is printed where lines cannot be
// rewritten.
const plainEvery = 15 * time.Second

// Progress prints how far the rounds are and how long they will take: one
// line that is rewritten on a terminal, plain lines elsewhere.
type Progress struct {
	w        io.Writer
	terminal bool

	start    time.Time
	printed  time.Time
	rounds   int
	perRound int
	done     int
}

// NewProgress returns a Progress that prints to f.
func NewProgress(f *os.File) *Progress {
	info, err := f.Stat()
	return &Progress{w: f, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (p *Progress) begin(rounds, perRound int) {
	p.start = time.Now()
	p.printed = p.start
	p.rounds, p.perRound = rounds, perRound
}

// step records one result of the named benchmark.
func (p *Progress) step(name string) {
	p.done++
	now := time.Now()
	switch {
	case p.terminal && now.Sub(p.printed) > 100*time.Millisecond:
		fmt.Fprintf(p.w, "\r%s  %s\x1b[K", p.line(now.Sub(p.start)), name)
	case !p.terminal && now.Sub(p.printed) > plainEvery:
		fmt.Fprintln(p.w, p.line(now.Sub(p.start)))
	default:
		return
	}
	p.printed = now
}

// endRound closes the line of a round.
func (p *Progress) endRound(round int) {
	now := time.Now()
	if p.terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", p.line(now.Sub(p.start)))
		if round == p.rounds {
			fmt.Fprintln(p.w)
		}
	} else {
		fmt.Fprintln(p.w, p.line(now.Sub(p.start)))
	}
	p.printed = now
}

func (p *Progress) line(elapsed time.Duration) string {
	total := p.rounds * p.perRound
	var left time.Duration
	if p.done > 0 {
		left = time.Duration(float64(elapsed) / float64(p.done) * float64(total-p.done))
	}
	return fmt.Sprintf("bench: round %*d of %d  %3d %%  elapsed %s  remaining %s",
		len(fmt.Sprint(p.rounds)), min((p.done+p.perRound-1)/p.perRound, p.rounds), p.rounds,
		p.done*100/total, elapsed.Round(time.Second), left.Round(time.Second))
}
