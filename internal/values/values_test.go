package values

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
)

type nested struct{ Next *nested }

type tagged struct {
	N int `json:"n,string"`
}

// Types of which all values that can be written can be read are known as such, and no others.
func TestPlain(t *testing.T) {
	type inner struct {
		A []string          `json:"a,omitempty"`
		B map[string]*int64 // of plain parts
		//lint:ignore U1000 it is not written
		c any
	}
	for _, v := range []any{"", 0, uint8(0), 0.5, true, inner{}, []inner{}, &inner{}, [2]int{}} {
		if !plain(reflect.TypeOf(v)) {
			t.Errorf("%T is not plain", v)
		}
	}
	for _, v := range []any{nested{}, tagged{}, time.Time{}, json.Number(""), json.RawMessage{}, map[int]int{}, func() {}, struct{ A any }{}, struct{ inner }{}} {
		if plain(reflect.TypeOf(v)) {
			t.Errorf("%T is plain", v)
		}
	}
}

// written is a codec that cannot read what it writes, nor write everything.
type written struct{}

var errBad, errUnread = errors.New("bad"), errors.New("unread")

func (written) Encode(s string) ([]byte, error) {
	if s == "bad" {
		return nil, errBad
	}
	return []byte(s), nil
}

func (written) Decode(b []byte) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	return "", errUnread
}

// A value that a store could not give back is refused, with the reason of the codec and of the store.
func TestValues(t *testing.T) {
	refusal := errors.New("refused")
	v := Of(written{}, 3, refusal)
	for text, want := range map[string]error{"": nil, "bad": errBad, "x": errUnread, "long": refusal} {
		err := v.Validate(text)
		if !errors.Is(err, want) || want != nil && !errors.Is(err, refusal) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	_, err := v.Decode("id", 7, []byte("x"))
	var decode *DecodeError
	if !errors.As(err, &decode) || *decode != (DecodeError{"id", 7, errUnread}) || err.Error() != `entry 7 of changeset "id": unread` {
		t.Error(err)
	}
	j := Of[any](nil, 0, refusal)
	encoded, err := j.Encode(map[string]any{"n": json.Number("9007199254740993")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := j.Decode("id", 0, encoded)
	if err != nil || got.(map[string]any)["n"] != json.Number("9007199254740993") {
		t.Error(got, err)
	}
	if _, err := j.Decode("id", 0, []byte("1 2")); err == nil {
		t.Error("there is something after the value")
	}
}
