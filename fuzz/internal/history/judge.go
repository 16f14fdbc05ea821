package history

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// failure is what was wrong with a trial.
type failure struct {
	illegal   bool     // no order explains the history of some key
	undecided bool     // porcupine does not say about some key
	wrong     []string // what clients found
	text      string   // of the history in question

	model   porcupine.Model
	history porcupine.LinearizationInfo
	drawing string // of it, once described
}

// judge returns nil if the trial went as it should.
func (o *outcome[S]) judge() *failure {
	f := &failure{wrong: o.wrong, model: modelOf(o.init)}
	if o.whole {
		f.model = modelOfAll(o.init)
	}
	for _, k := range slices.Sorted(maps.Keys(o.parts)) {
		key := ""
		if k != AllKeys {
			key = fmt.Sprint(" on key ", k)
		}
		ops := operations(o.parts[k])
		switch porcupine.CheckOperationsTimeout(f.model, ops, decides) {
		case porcupine.Unknown:
			f.undecided = true
			f.text = fmt.Sprintf("porcupine does not decide in %v about the operations%s\n%s", decides, key, text(o.parts[k]))
		case porcupine.Illegal:
			f.illegal = true
			f.text = fmt.Sprintf("no order explains the operations%s\n%s", key, text(o.parts[k]))
			_, f.history = porcupine.CheckOperationsVerbose(f.model, ops, decides)
			return f
		}
	}
	if f.undecided || len(f.wrong) > 0 {
		return f
	}
	return nil
}

// operations is a history as porcupine wants it: the record is all there is to
// know. Second halves are drawn as another client's, as porcupine draws each
// client's operations one after the other.
func operations[S comparable](history []record[S]) []porcupine.Operation {
	clients := 0
	for _, r := range history {
		clients = max(clients, 1+r.client)
	}
	ops := make([]porcupine.Operation, len(history))
	for i, r := range history {
		lane := r.client
		if r.second {
			lane += clients
		}
		ops[i] = porcupine.Operation{ClientId: lane, Input: r, Call: r.from, Return: r.to}
	}
	return ops
}

// modelOf returns the model of one key.
func modelOf[S comparable](init S) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return init },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := input.(record[S]).event.After(state.(S))
			return ok, next
		},
		DescribeOperation: describeOperation[S],
	}
}

// modelOfAll returns the model of all keys together.
func modelOfAll[S comparable](init S) porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			var all Whole[S]
			for k := range all {
				all[k] = init
			}
			return all
		},
		Step: func(state, input, _ any) (ok bool, next any) {
			all, r := state.(Whole[S]), input.(record[S])
			if r.key == AllKeys {
				all, ok = r.event.(WholeEvent[S]).AfterAll(all)
			} else {
				all[r.key], ok = r.event.After(all[r.key])
			}
			return ok, all
		},
		DescribeOperation: describeOperation[S],
	}
}

func describeOperation[S comparable](input, _ any) string { return input.(record[S]).describe() }

// describe tells what happened and how to go on, and draws an illegal history
// in dir.
func (f *failure) describe(t *testing.T, seed uint64, procs int, dir string) string {
	var b strings.Builder
	for _, w := range f.wrong {
		fmt.Fprintln(&b, w)
	}
	fmt.Fprintf(&b, "%s\nThe same operations again, in other interleavings:\n\t%s=%#x go test ./fuzz/histories -run '^%s$' -cpu %d\n",
		f.text, seedVariable, seed, t.Name(), procs)
	if !f.illegal {
		return b.String()
	}
	f.drawing = filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".html")
	if err := porcupine.VisualizePath(f.model, f.history, f.drawing); err != nil {
		fmt.Fprintf(&b, "cannot draw the history: %v\n", err)
	} else {
		fmt.Fprintf(&b, "drawn in %s\n", f.drawing)
	}
	return b.String()
}

// artifacts returns a folder that outlives the test: that of go test -artifacts, from Go 1.26 on.
func artifacts(t *testing.T) string {
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		return any(t).(interface{ ArtifactDir() string }).ArtifactDir()
	}
	dir, err := os.MkdirTemp("", "histories-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
