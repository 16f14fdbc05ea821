//go:build !modelcheck

package histories_test

import "fmt"

// held is what a registry holds of one key, and the state of its model. An
// absent key has no value and remembers the version of its deletion.
type held struct {
	value   int
	version int    // the last one, or of the deletion
	spelled string // by the creator
}

func (h held) live() bool { return h.value != 0 }

// registryEvent is an operation of a registry on one key.
type registryEvent struct {
	op      string
	value   int    // to be stored
	version int    // asked for
	spelled string // the key
	got     held   // returned; spelled only by a Create that found the key
	saw     int    // what Get returned, or the function was given in its last run
	outcome string // "stored", "absent", …, or of the function: "failed"
}

func (e registryEvent) Kind() string { return e.op + " " + e.outcome }

func (e registryEvent) String() string {
	args := e.spelled
	if e.value != 0 {
		args += fmt.Sprint(", ", e.value)
	}
	if e.version != 0 {
		args += fmt.Sprint(", version ", e.version)
	}
	result := e.outcome
	if e.got != (held{}) {
		result += fmt.Sprintf(" %d version %d %s", e.got.value, e.got.version, e.got.spelled)
	}
	if e.saw != 0 {
		result += fmt.Sprint(", saw ", e.saw)
	}
	return fmt.Sprintf("%s(%s) = %s", e.op, args, result)
}

// What operations have in common is the outcome, which says what they found:
//
//	found     the key, which they return
//	seen      the key, whose value they return
//	absent    nothing
//	exists    the key, where none was wanted
//	conflict  another version than was wanted
//	failed    whatever their function saw, before it ended badly
//	stored    what they needed, and changed it
//	deleted   what they needed, and deleted it
func (e registryEvent) After(s held) (held, bool) {
	switch e.outcome {
	case "found":
		return s, s.live() && e.got == held{s.value, s.version, ""}
	case "seen":
		return s, s.live() && e.saw == s.value
	case "absent":
		return s, !s.live()
	case "exists":
		return s, s.live() && e.got == held{0, s.version, s.spelled}
	case "conflict":
		return s, s.live() && e.got.version == s.version && e.version != s.version
	case "failed":
		return s, e.saw == s.value
	case "deleted":
		gone := held{version: s.version + 1}
		switch e.op {
		case "DeleteIf":
			return gone, s.live() && e.version == s.version
		case "Compute", "DeleteFunc":
			return gone, s.live() && e.saw == s.value
		}
		return gone, s.live() && e.got == held{s.value, s.version, ""}
	case "stored":
		return e.store(s)
	}
	panic(e.outcome)
}

// store is After for what changes the key. The first version of a life is not
// known but by the operation that began it: all is well if it is above all
// that the key had before.
func (e registryEvent) store(s held) (held, bool) {
	next := held{e.value, e.got.version, s.spelled}
	if !s.live() {
		next.spelled = e.spelled
	}
	if e.got.value != e.value {
		return next, false
	}
	creates := e.op == "Create" || e.op == "Put" || e.op == "createOrUpdate" || e.op == "Compute"
	switch {
	case s.live() && (e.op == "Create" || e.got.version != s.version+1):
		return next, false
	case !s.live() && (!creates || e.got.version <= s.version):
		return next, false
	case e.op == "UpdateIf":
		return next, e.version == s.version
	case e.op == "Update" || e.op == "createOrUpdate" || e.op == "Compute":
		return next, e.saw == s.value
	}
	return next, true
}
