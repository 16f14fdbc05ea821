package atomicbreaker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An enum is a type whose values have names: names[v] is that of v, and "" says
// that v has none.
type enum struct {
	kind  string
	names []string
}

// nameOf returns the name of v, or its number.
func nameOf[T ~uint8](e enum, v T) string {
	if int(v) < len(e.names) && e.names[v] != "" {
		return e.names[v]
	}
	return e.kind + "(" + strconv.Itoa(int(v)) + ")" // fmt would make e escape
}

// setNamed sets v to the value with this name, and leaves it alone if there is
// none.
func setNamed[T ~uint8](e enum, v *T, name []byte) error {
	i := slices.Index(e.names, string(name))
	if i < 0 || len(name) == 0 {
		known := slices.DeleteFunc(slices.Clone(e.names), func(name string) bool { return name == "" })
		return fmt.Errorf("atomicbreaker: %s %q: must be one of %s", e.kind, name, strings.Join(known, ", "))
	}
	*v = T(i)
	return nil
}
