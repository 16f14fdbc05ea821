package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"
)

// sources holds the comments of the cases, which the legend shows.
//
//go:embed case_*.go
var sources embed.FS

const heading = `# What each cache does when it goes wrong

Caches that create their values promise one creation for each key, however many ask. They differ where something goes
wrong: the creation fails, panics or never ends, a caller leaves, a key is deleted at the wrong moment. This page is
written by a program, ` + "`bench/failures`" + `, which runs every case with every cache, each in a process of
its own, and prints what it observed.

    cd bench/failures && go run . -o ../../oncecache/COMPARISON.md

Only what was run is said. Each cache is used as its documentation recommends; where it does not offer what a case
needs, it is not asked, and the page says why. The cases are defects that users of such caches have reported, and what
their documentation promises, collected by the authors of one of them: that its column is better than others is what
they were collected for. Speed is the subject of ` + "`bench`" + `; how well a cache chooses what to evict, and what else it
can do, is nobody's here.

`

const legend = `
| | |
|---|---|
| pass | what the case expects was observed; a number after it says that somebody had something to add, see *Observed* |
| **fail** | something else was observed |
| **wrong** | a caller got a value that it must not get, or nil without an error |
| **hang** | somebody waits who nobody will wake: every goroutine of the process waits for another one |
| **crash** | the process dies; nobody can recover |
| n/a | not asked: see *Not asked* |

What passes is said with each case under *The cases*, in a sentence that does not ask whose cache it is.

Nearly all cases are forced: create functions stop where the case wants them, and a case goes on when every goroutine
waits. So they fail every time or never. Those few that take luck say in how many rounds they had it; a pass of theirs
is no proof.
`

// format returns the page.
func format(results map[job]outcome, versions map[string]string) ([]byte, error) {
	docs, err := comments()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(heading)
	b.WriteString("## The caches\n\n| | version | used as |\n|---|---|---|\n")
	for _, p := range peers {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.name, versions[p.name], p.uses)
	}
	fmt.Fprintf(&b, "\nRun with %s on %s/%s, %d processors.\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))

	b.WriteString("\n## The table\n" + legend)
	var notes notes
	for _, g := range groups {
		rows := g.rows(results)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| |", g.title)
		for _, p := range peers {
			fmt.Fprintf(&b, " %s |", p.name)
		}
		b.WriteString("\n|---|" + strings.Repeat(":---:|", len(peers)) + "\n")
		for _, c := range rows {
			fmt.Fprintf(&b, "| %s |", c.title)
			for _, p := range peers {
				o, ok := results[job{c, p}]
				if !ok {
					b.WriteString(" |")
					continue
				}
				fmt.Fprintf(&b, " %s |", cell(o, notes.add(c, p, o)))
			}
			b.WriteString("\n")
		}
	}
	notes.write(&b)
	notAsked(&b, results)
	b.WriteString("\n## The cases\n")
	for _, g := range groups {
		rows := g.rows(results)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s: the cases\n\n", g.title)
		for _, c := range rows {
			fmt.Fprintf(&b, "- **%s** (`%s`). %s\n", c.title, c.name, docs[c.name])
		}
	}
	return b.Bytes(), nil
}

// rows returns the cases of a group that were run.
func (g group) rows(results map[job]outcome) []*testCase {
	var rows []*testCase
	for _, c := range g.cases {
		for _, p := range peers {
			if _, ok := results[job{c, p}]; ok {
				rows = append(rows, c)
				break
			}
		}
	}
	return rows
}

// cell returns what a cell shows.
func cell(o outcome, note int) string {
	text := string(o.Status)
	switch o.Status {
	case fail, hang, crash:
		text = "**" + text + "**"
	case wrong:
		text = "**wrong**"
	case count:
		return o.Note
	case na:
		return text
	}
	if o.Status == pass && o.Rounds > 0 {
		text += fmt.Sprintf(" in %s", grouped(o.Rounds))
	}
	if note > 0 {
		text += fmt.Sprintf(" [%d](#observed)", note)
	}
	return text
}

// notes are what was observed beyond a pass. Caches that did the same share
// one.
type notes struct{ all []note }

type note struct {
	c     *testCase
	text  string
	peers []string
	at    int
}

// add returns the number of the note that o needs, or 0.
func (n *notes) add(c *testCase, p *peer, o outcome) int {
	if o.Note == "" || o.Status == na || o.Status == count {
		return 0
	}
	for i := range n.all {
		if n.all[i].c == c && n.all[i].text == o.Note {
			n.all[i].peers = append(n.all[i].peers, p.name)
			return n.all[i].at
		}
	}
	n.all = append(n.all, note{c, o.Note, []string{p.name}, len(n.all) + 1})
	return len(n.all)
}

func (n *notes) write(b *bytes.Buffer) {
	if len(n.all) == 0 {
		return
	}
	b.WriteString("\n## Observed\n\n")
	for _, note := range n.all {
		fmt.Fprintf(b, "%d. %s: %s: %s.\n", note.at, note.c.title, strings.Join(note.peers, ", "), escape(note.text))
	}
}

// notAsked lists why cases were not run.
func notAsked(b *bytes.Buffer, results map[job]outcome) {
	var text strings.Builder
	for _, p := range peers {
		var reasons []string
		rows := make(map[string][]string)
		for _, c := range cases() {
			if o, ok := results[job{c, p}]; ok && o.Status == na {
				if rows[o.Note] == nil {
					reasons = append(reasons, o.Note)
				}
				rows[o.Note] = append(rows[o.Note], c.name)
			}
		}
		for i, reason := range reasons {
			reasons[i] = fmt.Sprintf("%s (%s)", reason, strings.Join(byGroup(rows[reason]), ", "))
		}
		if len(reasons) > 0 {
			fmt.Fprintf(&text, "- **%s**: %s.\n", p.name, strings.Join(reasons, "; "))
		}
	}
	if text.Len() > 0 {
		b.WriteString("\n## Not asked\n\n" + text.String())
	}
}

// byGroup returns the names of cases, and titles for those of whole groups.
func byGroup(names []string) []string {
	for _, g := range groups {
		first := slices.Index(names, g.cases[0].name)
		if first < 0 || len(names)-first < len(g.cases) {
			continue
		}
		whole := true
		for i, c := range g.cases {
			whole = whole && names[first+i] == c.name
		}
		if whole {
			names = slices.Replace(slices.Clone(names), first, first+len(g.cases), "all of *"+g.title+"*")
		}
	}
	return names
}

// passes begins the sentence of a case's comment that says what is a pass.
const passes = "Pass: "

// comments returns the comments of the cases' functions, in one line each and
// without the name they begin with.
func comments() (map[string]string, error) {
	docs := make(map[string]string)
	for _, g := range groups {
		text, err := sources.ReadFile(g.file)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), g.file, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Doc != nil {
				_, doc, _ := strings.Cut(strings.Join(strings.Fields(fn.Doc.Text()), " "), " ")
				docs[fn.Name.Name] = strings.Replace(capital(escape(doc)), passes, "*Pass*: ", 1)
			}
		}
	}
	return docs, nil
}

// capital returns s with a capital first letter.
func capital(s string) string {
	r := []rune(s)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

// escape returns s so that Markdown shows what it says.
func escape(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*", "\n", " ").Replace(s)
}

// grouped prints n with commas.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// versions returns the versions that were linked, by the peers' names.
func versions() map[string]string {
	modules := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			modules[m.Path] = m.Version
			if m.Replace != nil {
				modules[m.Path] = "this one"
			}
		}
	}
	byPeer := make(map[string]string)
	for _, p := range peers {
		if p.module == "" {
			byPeer[p.name] = "the standard library of " + runtime.Version()
		} else {
			byPeer[p.name] = fmt.Sprintf("`%s` %s", p.module, modules[p.module])
		}
	}
	return byPeer
}
