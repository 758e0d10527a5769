package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// pick reads the members "a" (a string), "b" (a bool) and "c.d" (a string in an object).
type pick struct {
	A string
	B bool
	C struct{ D string }
}

func read(r *Reader) (pick, error) {
	var p pick
	err := r.Object(func(key string) (err error) {
		switch key {
		case "a":
			p.A, err = r.String(1 << 20)
		case "b":
			p.B, err = r.Bool()
		case "c":
			err = r.Object(func(key string) (err error) {
				if key == "d" {
					p.C.D, err = r.String(1 << 20)
				}
				return err
			})
		}
		return err
	})
	return p, err
}

// all reads every record and counts the broken ones.
func all(in io.Reader) (good []pick, bad int) {
	r := NewReader(in)
	for r.Next() == nil {
		for {
			p, err := read(r)
			if err != nil {
				bad++
				break
			}
			good = append(good, p)
			if !r.More() {
				break
			}
		}
	}
	return good, bad
}

func TestReader(t *testing.T) {
	tests := map[string]struct {
		in   string
		want []string // the a of each record
		bad  int
	}{
		"one record":                       {`{"a":"x"}` + "\n", []string{"x"}, 0},
		"no LF after the last":             {`{"a":"x"}`, []string{"x"}, 0},
		"CRLF and blank lines":             {"\r\n{\"a\":\"x\"}\r\n\n \n{\"a\":\"y\"}\r\n", []string{"x", "y"}, 0},
		"two records on one line":          {`{"a":"x"}{"a":"y"} {"a":"z"}` + "\n", []string{"x", "y", "z"}, 0},
		"U+2028 is no end of line":         {"{\"a\":\"x\u2028y\"}\n", []string{"x\u2028y"}, 0},
		"escapes":                          {`{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}`, []string{"\"\\/\b\f\n\r\té😀"}, 0},
		"lone surrogates":                  {`{"a":"\ud83d-\ude00\ud83d\u0041"}`, []string{"\uFFFD-\uFFFD\uFFFDA"}, 0},
		"not UTF-8":                        {"{\"a\":\"x\xffy\"}", []string{"x\uFFFDy"}, 0},
		"other types count as absent":      {`{"a":{"a":"no"}}` + "\n" + `{"a":[1,"]",{"x":"}"}]}` + "\n" + `{"a":null}`, []string{"", "", ""}, 0},
		"no object":                        {"null\n[1]\n\"s\"\n-1.5e3\n{\"a\":\"x\"}", []string{"", "", "", "", "x"}, 0},
		"empty containers":                 {`{"z":{},"y":[],"a":"x"}`, []string{"x"}, 0},
		"garbage spoils its own line":      {"Warning: x\n{\"a\":\"x\"}\n}{\n{\"a\":\"y\"}", []string{"x", "y"}, 2},
		"cut line":                         {"{\"a\":\"x\n{\"a\":\"y\"}\n", []string{"y"}, 1},
		"cut in the middle of a character": {"{\"a\":\"x\"}\n{\"a\":\"\xe2\x82", []string{"x"}, 1},
		"cut in an escape":                 {`{"a":"\ud8`, nil, 1},
		"cut between members":              {`{"a":"x",`, nil, 1},
		"bad escape":                       {`{"a":"\x"}` + "\n" + `{"a":"y"}`, []string{"y"}, 1},
		"missing comma":                    {`{"a":"x" "b":true}`, nil, 1},
		"missing colon":                    {`{"a" "x"}`, nil, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			good, bad := all(strings.NewReader(tt.in))
			var got []string
			for _, p := range good {
				got = append(got, p.A)
			}
			is.Equal(got, tt.want)
			is.Equal(bad, tt.bad)
		})
	}
}

func TestReader_AString_IsCutBetweenCharacters(t *testing.T) {
	for limit, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé", "aé😀", "aé😀"} {
		is := is.New(t)
		r := NewReader(strings.NewReader(`"aé😀"`))
		is.NoErr(r.Next())
		got, err := r.String(limit)
		is.NoErr(err)
		is.Equal(got, want) // with this limit
	}
}

func TestReader_DeepNesting_NeedsNoStack(t *testing.T) {
	is := is.New(t)
	const deep = 1_000_000
	good, bad := all(strings.NewReader(`{"z":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `,"a":"x"}`))
	is.Equal(bad, 0)
	is.Equal(good[0].A, "x")
}

// endless is a line with one huge string, made while it is read.
type endless struct {
	head, tail string
	fill       int
}

func (e *endless) Read(p []byte) (int, error) {
	switch {
	case e.head != "":
		n := copy(p, e.head)
		e.head = e.head[n:]
		return n, nil
	case e.fill > 0:
		n := min(len(p), e.fill)
		for i := range p[:n] {
			p[i] = 'x'
		}
		e.fill -= n
		return n, nil
	case e.tail != "":
		n := copy(p, e.tail)
		e.tail = e.tail[n:]
		return n, nil
	}
	return 0, io.EOF
}

func TestReader_ALineOf64MB_IsNotHeldInMemory(t *testing.T) {
	is := is.New(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	good, bad := all(&endless{head: `{"z":"`, fill: 64 << 20, tail: `","a":"x"}` + "\n"})
	runtime.ReadMemStats(&after)
	is.Equal(bad, 0)
	is.Equal(good[0].A, "x")
	is.True(after.TotalAlloc-before.TotalAlloc < 1<<20) // less than 1 MiB in all
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		`{"a":"x","b":true,"c":{"d":"y"}}`, `{"a":"\ud83d\ude00"}`, `[{"a":1}]`, `{"a":"x"}{"a":"y"}`, `{"z":[{"a":"]"}],"a":"x"}`, "{\n}", `"`, `{"a`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.ReplaceAll(line, []byte("\n"), []byte(" "))
		r := NewReader(bytes.NewReader(append(append([]byte{}, line...), "\n{\"a\":\"next\"}\n"...)))
		var got pick
		err := r.Next()
		if err == nil && len(bytes.Trim(line, " \t\r")) > 0 {
			got, err = read(r)
			if err != nil && !errors.Is(err, ErrSyntax) {
				t.Fatalf("unexpected kind of error: %v", err)
			}
			// Where encoding/json sees an object without odd member names, so do we.
			var members map[string]json.RawMessage
			if json.Unmarshal(line, &members) == nil && members != nil {
				if err != nil {
					t.Fatalf("valid line refused: %v", err)
				}
				var want string
				_ = json.Unmarshal(members["a"], &want)
				if bytes.Count(line, []byte(`"a"`)) == 1 && got.A != want {
					t.Fatalf("a = %q, want %q", got.A, want)
				}
			}
			if err := r.Next(); err != nil {
				t.Fatalf("no next line: %v", err)
			}
		}
		next, err := read(r)
		if err != nil || next.A != "next" {
			t.Fatalf("the next line was not read: %+v %v", next, err)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	plain := `{"type":"tool_execution_end","result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}]}}` + "\n"
	escapes := `{"type":"tool_execution_end","result":{"content":[{"type":"text","text":"` + strings.Repeat(`forty characters of output, then\n\t\"ok\"`, 1<<15) + `"}]}}` + "\n"
	for name, line := range map[string]string{"plain": plain, "escapes": escapes} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if good, bad := all(strings.NewReader(line)); len(good) != 1 || bad != 0 {
					b.Fatal("not read")
				}
			}
		})
	}
}
