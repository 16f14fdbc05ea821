package latchprom

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// A family is one metric that a type has.
type family struct {
	name   string
	help   string
	kind   prometheus.ValueType
	labels []string // besides that of the instance
}

// emit adds a sample to what is collected.
type emit func(f *family, value float64, labels ...string)

// A collector reads an instance at each scrape. It never changes.
type collector struct {
	families []*family
	descs    map[*family]*prometheus.Desc
	read     func(emit)
}

// newCollector returns the collector of the instance that is called name in a label.
func newCollector(label, name string, read func(emit), families ...*family) *collector {
	c := &collector{families: families, descs: make(map[*family]*prometheus.Desc, len(families)), read: read}
	for _, f := range families {
		c.descs[f] = prometheus.NewDesc(f.name, f.help, f.labels, prometheus.Labels{label: utf8(name)})
	}
	return c
}

// utf8 returns text with all that is not UTF-8 replaced, as labels must be.
func utf8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.families {
		ch <- c.descs[f]
	}
}

// Collect sends what read emits, or an error alone. Functions of users, which are
// GroupOptions.Label and what types of keys do, run on a goroutine of their own: one
// that calls runtime.Goexit would take the scrape's goroutine with it.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	metrics, err := c.samples()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.descs[c.families[0]], err)
		return
	}
	for _, m := range metrics {
		ch <- m
	}
}

func (c *collector) samples() (metrics []prometheus.Metric, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = errors.New("latchprom: a function called runtime.Goexit")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("latchprom: a function panicked: %v\n%s", p, debug.Stack())
			}
		}()
		c.read(func(f *family, value float64, labels ...string) {
			metrics = append(metrics, prometheus.MustNewConstMetric(c.descs[f], f.kind, value, labels...))
		})
		err = nil
	}()
	<-done
	return metrics, err
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
