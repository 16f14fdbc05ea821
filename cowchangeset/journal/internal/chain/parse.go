package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A parser reads lines. It accepts exactly the lines that encode makes.
type parser struct {
	rest []byte
	why  string            // why the line is not one, once it is not
	ids  map[string]string // strings that were made of IDs, to be used again

	quoted []byte // for text alone

	decodes bool // values are decoded afterwards, which says if they are none

	values []entry // of the line
}

// A parser remembers so many IDs, which are no longer than that.
const (
	maxIDs = 1024
	maxID  = 256
)

// parse reads the body of a line: the bytes that its hash is of. If no such line may
// stand there, it returns why. The line refers to the body.
func (p *parser) parse(l *Line, body []byte, number int, prev Digest) (why string) {
	p.rest, p.why = body, ""
	p.expect(lineKey)
	if n := p.uint(); p.why == "" && n != uint64(number) {
		return fmt.Sprintf("it says that it is line %d", n)
	}
	p.expect(opKey)
	*l = Line{Op: p.op()}
	l.fields(p)
	p.expect(prevKey)
	rest, ok := bytes.CutPrefix(p.rest, prev[:])
	if p.why == "" && !ok {
		return "its prev is not the hash of the line before it"
	}
	p.rest = rest
	p.expect(`"`)
	if p.why == "" && len(p.rest) > 0 {
		p.fail()
	}
	return p.why
}

// fail notes the reason that fits most bad lines.
func (p *parser) fail() {
	if p.why == "" {
		p.why = "not as a journal writes it"
	}
	p.rest = nil
}

func (p *parser) expect(text string) {
	if len(p.rest) < len(text) || string(p.rest[:len(text)]) != text {
		p.fail()
		return
	}
	p.rest = p.rest[len(text):]
}

// op reads an op and the quote behind it.
func (p *parser) op() Op {
	for _, o := range []Op{OpAppend, OpSeal, OpStart, OpApplied, OpAbort, OpPrune, OpGap, OpJournal} {
		if len(p.rest) > len(o) && string(p.rest[:len(o)]) == string(o) && p.rest[len(o)] == '"' {
			p.rest = p.rest[len(o)+1:]
			return o
		}
	}
	if p.why == "" {
		text, _, _ := bytes.Cut(p.rest, []byte{'"'})
		p.why = fmt.Sprintf("unknown op %q", text)
	}
	p.rest = nil
	return ""
}

func (p *parser) key(key string) {
	p.expect(`,"`)
	p.expect(key)
	p.expect(`":`)
}

// uint reads a number.
func (p *parser) uint() uint64 {
	n := 0
	for n < len(p.rest) && '0' <= p.rest[n] && p.rest[n] <= '9' {
		n++
	}
	var v uint64
	if n <= 18 { // which surely is in range
		for _, c := range p.rest[:n] {
			v = v*10 + uint64(c-'0')
		}
	} else if u, err := strconv.ParseUint(string(p.rest[:n]), 10, 64); err == nil {
		v = u
	} else {
		n = 0
	}
	if n == 0 || n > 1 && p.rest[0] == '0' {
		p.fail()
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) number(key string, n *uint64) {
	p.key(key)
	*n = p.uint()
	if key == "format" && p.why == "" && *n != Format {
		p.why = fmt.Sprintf("the file has format %d, and not %d", *n, Format)
	}
}

func (p *parser) text(key string, s *string) {
	p.key(key)
	n := stringLen(p.rest)
	if n == 0 {
		p.fail()
		return
	}
	quoted := p.rest[:n]
	p.rest = p.rest[n:]
	text, ok := p.ids[string(quoted)]
	if !ok {
		if !utf8.Valid(quoted) || bytes.IndexByte(quoted, '\\') >= 0 && json.Unmarshal(quoted, &text) != nil {
			p.fail()
			return
		}
		if text == "" {
			text = string(quoted[1 : n-1])
		}
		if p.quoted = appendQuoted(p.quoted[:0], text); string(p.quoted) != string(quoted) {
			p.fail()
			return
		}
		if p.ids == nil || len(p.ids) >= maxIDs {
			p.ids = map[string]string{}
		}
		if key == "id" && len(text) <= maxID {
			p.ids[string(quoted)] = text
		}
	}
	*s = text
}

func (p *parser) flag(key string, b *bool) {
	p.key(key)
	if *b = bytes.HasPrefix(p.rest, []byte("true")); *b {
		p.expect("true")
	} else {
		p.expect("false")
	}
}

func (p *parser) checkpoint(l *Line) {
	p.key("gaps")
	p.objects(segmentKey, func(segment uint64) {
		l.gaps = append(l.gaps, Gap{Segment: segment})
		l.gaps[len(l.gaps)-1].fields(p)
	})
	p.key("changesets")
	p.objects(ordinalKey, func(ordinal uint64) {
		l.changesets = append(l.changesets, Changeset{Ordinal: ordinal})
		l.changesets[len(l.changesets)-1].fields(p)
	})
}

// objects reads a list of objects that begin with a number.
func (p *parser) objects(key string, object func(number uint64)) {
	p.expect("[")
	for more := !bytes.HasPrefix(p.rest, []byte("]")); more && p.why == ""; {
		p.expect(key)
		object(p.uint())
		p.expect("}")
		if more = bytes.HasPrefix(p.rest, []byte(",")); more {
			p.expect(",")
		}
	}
	p.expect("]")
}

func (p *parser) list(l *Line) {
	p.key("entries")
	p.expect("[")
	whole := p.rest
	from := len(p.values)
	for p.why == "" {
		var e entry
		p.expect(seqKey)
		if e.seq = p.uint(); e.seq >= MaxSeq {
			p.fail()
		}
		p.expect(valueKey)
		e.value = p.value()
		p.expect("}")
		if p.why != "" {
			return
		}
		if len(p.values) > from && e.seq <= l.Last {
			p.why = OutOfOrder(e.seq, l.Last)
			return
		}
		p.values, l.Last = append(p.values, e), e.seq
		if len(p.rest) > 0 && p.rest[0] == ',' {
			p.rest = p.rest[1:]
			continue
		}
		l.Entries = whole[:len(whole)-len(p.rest)]
		p.expect("]")
		l.Values = p.values[from:]
		l.First, l.Count = l.Values[0].seq, uint64(len(l.Values))
		return
	}
}

// value reads any JSON.
func (p *parser) value() []byte {
	n := valueLen(p.rest)
	v := p.rest[:n]
	if len(v) == 0 || !p.decodes && !json.Valid(v) {
		p.fail()
		return nil
	}
	p.rest = p.rest[n:]
	return v
}

// valueLen returns the length of the JSON value that b begins with, if it does,
// and of no more than b.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringLen(b[i:])
			if n == 0 {
				return len(b)
			}
			i += n - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // it belongs to the text around the value
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(b)
}

// stringLen returns the length of the JSON string that b begins with, or 0.
func stringLen(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		i += n
		escaped := false
		for k := i - 1; k > 0 && b[k] == '\\'; k-- {
			escaped = !escaped
		}
		if !escaped {
			return i + 1
		}
	}
	return 0
}

// cutHash splits a line, without its newline, into its body and its hash, or returns
// why it cannot.
func cutHash(text []byte) (body []byte, hash Digest, why string) {
	n := len(text) - len(hashKey) - len(hash) - len(lineEnd)
	if n < 0 || string(text[n:n+len(hashKey)]) != hashKey || string(text[len(text)-len(lineEnd):]) != lineEnd {
		return nil, hash, "there is no hash at its end"
	}
	copy(hash[:], text[n+len(hashKey):])
	if hashOf(text[:n]) != hash {
		return nil, hash, "its hash is not that of its bytes"
	}
	return text[:n], hash, ""
}
