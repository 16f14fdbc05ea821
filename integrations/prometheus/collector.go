package latchprom

import (
	"context"
	"fmt"
	"strings"

	"github.com/latchfree/latchfree/internal/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// A collector reads an instance at each scrape. It never changes.
type collector struct {
	source *metrics.Source
	descs  map[*metrics.Family]*prometheus.Desc
}

// newCollector returns the collector of the instance that is called name in its label.
func newCollector(name string, source *metrics.Source) *collector {
	c := &collector{source, make(map[*metrics.Family]*prometheus.Desc, len(source.Families))}
	for _, f := range source.Families {
		c.descs[f] = prometheus.NewDesc(nameOf(f), f.Help, labelsOf(f), instance(source.Type, name))
	}
	return c
}

// notNil returns p, or panics with a text that ends with what.
func notNil[T any](p *T, what string) *T {
	if p == nil {
		panic("latchprom: " + what)
	}
	return p
}

// nameOf returns the name of a family as Prometheus has it, with its unit.
func nameOf(f *metrics.Family) string {
	name := "latchfree_" + strings.ReplaceAll(f.Name, ".", "_")
	switch f.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if f.Kind == metrics.Counter {
		name += "_total"
	}
	return name
}

// labelsOf returns the names of a family's labels: the last part of each.
func labelsOf(f *metrics.Family) (labels []string) {
	for _, l := range f.Labels {
		labels = append(labels, l[strings.LastIndexByte(l, '.')+1:])
	}
	return labels
}

// instance returns the label of an instance: the last word of its type.
func instance(of, name string) prometheus.Labels {
	return prometheus.Labels{of[strings.LastIndexByte(of, '_')+1:]: metrics.Text(name)}
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.source.Families {
		ch <- c.descs[f]
	}
}

// Collect sends what is read, or an error alone.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	samples, err := c.source.Samples(context.Background())
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.descs[c.source.Families[0]], fmt.Errorf("latchprom: %w", err))
		return
	}
	for _, s := range samples {
		kind := prometheus.GaugeValue
		if s.Family.Kind == metrics.Counter {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(c.descs[s.Family], kind, s.Value, s.Labels...)
	}
}
