// Command journal looks at journals of package cowchangeset/journal, whatever their
// entries are, and repairs them. See journal -h.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `Usage:

	journal verify [-from LINE:HASH] PATH
	journal cat [-id ID] [-after LINE] [-f] PATH
	journal repair [-n | -undo] PATH

PATH is the directory of a journal. All but repair only read it, also while it
is written.

	verify  checks all lines, and says what there is, up to the first damage:
	        segments, lines, changesets, and the last line for a later -from.
	        With -from, the journal must have that line with that hash: what it
	        had then is as it was.
	cat     prints lines as JSON, one for each: what happened. With -id, it
	        prints the entries of one changeset. With -after, it begins behind a
	        line. With -f, it goes on with what comes, which may not be synced
	        yet, until it is interrupted.
	repair  takes damaged segments out, and says so in the journal; from the
	        last one, it cuts all from the first damaged line on. What it takes
	        out or changes is kept beside the segments. With -n, it says what it
	        would do, and does nothing. With -undo, it takes the last repair
	        back, if nothing was written since. Nobody may have the journal open.

Exit codes:

	0  The journal is sound, as far as it was read.
	1  It is damaged; of repair: it was, and something was taken out or would be.
	2  The command was not used as it is said here.
	3  It could not be read, or repaired, or has not what was asked for.
`

const (
	exitSound = iota
	exitDamaged
	exitUsage
	exitFailed
)

// errUsage: the arguments are not as usage says.
var errUsage = errors.New("wrong usage")

// run is the command without the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	var err error
	switch name {
	case "verify":
		err = verify(args, stdout)
	case "cat":
		err = cat(ctx, args, stdout)
	case "repair":
		err = doRepair(args, stdout)
	case "-h", "-help", "--help", "help":
		err = flag.ErrHelp
	default:
		err = fmt.Errorf("%w: no command %q", errUsage, name)
	}
	if errors.Is(err, flag.ErrHelp) {
		io.WriteString(stdout, usage)
		return exitSound
	}
	code := codeOf(err)
	if err != nil && err != errCut {
		fmt.Fprintln(stderr, err)
	}
	if code == exitUsage {
		io.WriteString(stderr, usage)
	}
	return code
}

func codeOf(err error) int {
	var corrupt *journal.CorruptError
	switch {
	case err == nil:
		return exitSound
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errNoRepair):
		return exitFailed
	case errors.As(err, &corrupt), err == errCut:
		return exitDamaged
	}
	return exitFailed
}

// parse reads flags and the path behind them.
func parse(flags *flag.FlagSet, args []string) (path string, err error) {
	flags.SetOutput(io.Discard)
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() != 1:
		return "", fmt.Errorf("%w: %d paths", errUsage, flags.NArg())
	}
	return flags.Arg(0), nil
}

func newFlags(name string) *flag.FlagSet { return flag.NewFlagSet(name, flag.ContinueOnError) }

func verify(args []string, stdout io.Writer) error {
	flags := newFlags("verify")
	var since journal.Anchor
	flags.Func("from", "", func(text string) (err error) {
		since, err = journal.ParseAnchor(text)
		return err
	})
	path, err := parse(flags, args)
	if err != nil {
		return err
	}
	r, damage := reader.Verify(path, since)
	if codeOf(damage) == exitFailed {
		return damage
	}
	print := func(name string, value any) {
		if err == nil {
			_, err = fmt.Fprintf(stdout, "%-12s%v\n", name, value)
		}
	}
	print("identity", r.Journal)
	print("segments", r.Segments)
	print("lines", r.Lines)
	print("bytes", r.Bytes)
	print("torn", r.Torn)
	print("changesets", r.Changesets)
	print("pending", r.Pending)
	print("entries", r.Entries)
	for _, g := range r.Gaps {
		print("taken out", fmt.Sprintf("segment %d: %s", g.Segment, g.Reason))
	}
	print("last", r.Last)
	if err != nil {
		return err
	}
	return damage
}

var (
	// errCut: repair has cut something.
	errCut = errors.New("cut")

	// errNoRepair: repair has failed.
	errNoRepair = errors.New("not repaired")
)

func doRepair(args []string, stdout io.Writer) error {
	flags := newFlags("repair")
	dry := flags.Bool("n", false, "")
	back := flags.Bool("undo", false, "")
	path, err := parse(flags, args)
	switch {
	case err != nil:
		return err
	case *dry && *back:
		return fmt.Errorf("%w: -n and -undo do not go together", errUsage)
	case *back:
		if err := repair.Undo(path); err != nil {
			return fmt.Errorf("%w: %w", errNoRepair, err)
		}
		_, err := fmt.Fprintln(stdout, "the journal is as it was before the repair")
		return err
	}
	do := repair.Repair
	if *dry {
		do = repair.Examine
	}
	cut, err := do(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRepair, err)
	}
	if _, err := fmt.Fprintln(stdout, cut); err != nil {
		return err
	}
	if cut.Damage != nil {
		return errCut
	}
	return nil
}

func open(path string) (*reader.Reader[json.RawMessage], error) {
	return reader.Open[json.RawMessage](path, reader.Options{})
}
