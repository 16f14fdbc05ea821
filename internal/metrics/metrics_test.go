package metrics_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/metrics"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Each source emits all its families and no others, with as many labels as they have, under names of its
// type.
func TestSources(t *testing.T) {
	recorded := oncecache.MustNew(oncecache.Config[int, int]{RecordStats: true})
	for _, s := range []*metrics.Source{
		metrics.Breaker(atomicbreaker.MustNew(atomicbreaker.Config{RecordTotals: true})), metrics.Breaker(new(atomicbreaker.Breaker)),
		metrics.Group(new(atomicbreaker.Group[int]), metrics.GroupOptions[int]{}),
		metrics.Throttle(new(throttle.Throttle)), metrics.RetryBudget(new(retrybudget.Budget)),
		metrics.Cache(recorded, true), metrics.Cache(new(oncecache.Cache[int, int]), false),
		metrics.Registry(new(shardedregistry.Registry[int, int])), metrics.Tracker(new(cowchangeset.Tracker[int])),
	} {
		samples, err := s.Samples(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		met := make(map[*metrics.Family]bool)
		for _, sample := range samples {
			met[sample.Family] = true
			if !slices.Contains(s.Families, sample.Family) || len(sample.Labels) != len(sample.Family.Labels) {
				t.Errorf("%s: %+v", s.Type, sample)
			}
		}
		names := make(map[string]bool)
		for _, f := range s.Families {
			if !met[f] || names[f.Name] || !strings.HasPrefix(f.Name, s.Type+".") || f.Help == "" || f.Unit == "" {
				t.Errorf("%s: %+v, emitted: %v", s.Type, f, met[f])
			}
			names[f.Name] = true
		}
	}
}

// A function that does not return gives an error and no samples, and does not hold its caller.
func TestSamplesOfFunctionsThatDoNotReturn(t *testing.T) {
	f := &metrics.Family{Name: "x"}
	for text, read := range map[string]func(){"panicked: boom": func() { panic("boom") }, "called runtime.Goexit": runtime.Goexit} {
		s := &metrics.Source{Read: func(emit metrics.Emit) { emit(f, 1); read() }}
		samples, err := s.Samples(context.Background())
		if err == nil || !strings.Contains(err.Error(), text) || samples != nil {
			t.Errorf("%v, %v", samples, err)
		}
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &metrics.Source{Read: func(metrics.Emit) { cancel(enough); <-make(chan struct{}) }}
	if _, err := s.Samples(ctx); !errors.Is(err, enough) {
		t.Error(err)
	}
}
