package typed

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
)

// A package has its tests if that is asked, external tests are packages of their own, and
// what has no tests is there too.
func TestLoad(t *testing.T) {
	run := func(args ...string) ([]byte, error) {
		return exec.Command("go", args...).Output()
	}
	for _, test := range []struct{ args, want []string }{
		{[]string{"../kill", "../leak"}, []string{"kill 1", "leak 1"}},
		{[]string{"-test", "../kill", "../leak"}, []string{"kill 1", "kill_test 1", "leak 2"}},
		{[]string{"-tags=modelcheck", "../mutants/testdata/fixture"}, []string{"fixture 2"}},
		{[]string{"-test", "-tags=modelcheck", "../mutants/testdata/fixture"}, []string{"fixture 4"}},
	} {
		all, err := Load(run, test.args...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range all {
			got = append(got, fmt.Sprint(p.Types.Name(), " ", len(p.Files)))
			if p.Types.Scope().Len() == 0 || len(p.Info.Defs) == 0 {
				t.Errorf("%s defines nothing", p.Path)
			}
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("go list %v: %v, want %v", test.args, got, test.want)
		}
	}
}
