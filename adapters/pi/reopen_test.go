package pi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func TestReopen_FindsTheChildAgain(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, l *childLink){
		"after a host that has let go": func(t *testing.T, l *childLink) { is.New(t).NoErr(l.Detach()) },
		"after a host that was killed": func(t *testing.T, l *childLink) {
			is := is.New(t)
			is.NoErr(l.Detach())
			is.NoErr(os.WriteFile(filepath.Join(l.dir, socketFile), nil, 0o600)) // its socket stays behind
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			l, _ := openLink(t)
			leave(t, l)

			told := newLevels()
			again, err := Links().Reopen(t.Context(), l.Dir(), told.add)
			is.NoErr(err)
			defer again.Close()
			connect(t, again.(*childLink), `"busy":true`)
			is.True(told.until(t, "up", up).Busy)
			is.Equal(again.(*childLink).token, l.token)
		})
	}
}

func TestReopen_LeavesALinkInUseAlone(t *testing.T) {
	is := is.New(t)
	l, _ := openLink(t)
	_, err := Links().Reopen(t.Context(), l.Dir(), newLevels().add)
	is.True(err != nil)
	connect(t, l, "")
}

func TestReopen_BelievesNoPath(t *testing.T) {
	is := is.New(t)
	l, _ := openLink(t)
	parent := t.TempDir()
	alias := filepath.Join(parent, dirPrefix+"alias")
	is.NoErr(os.Symlink(l.Dir(), alias))
	wide := filepath.Join(parent, dirPrefix+"wide")
	is.NoErr(os.Mkdir(wide, 0o755))
	is.NoErr(os.Chmod(wide, 0o755))

	for dir, want := range map[string]error{
		parent:                                  ErrNotOurs,
		alias:                                   ErrNotOurs,
		wide:                                    ErrNotOurs,
		filepath.Join(parent, dirPrefix+"none"): fs.ErrNotExist,
	} {
		_, err := Links().Reopen(t.Context(), dir, newLevels().add)
		is.True(errors.Is(err, want)) // dir
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Links().Reopen(ctx, l.Dir(), newLevels().add)
	is.True(errors.Is(err, context.Canceled))
}

func TestStored(t *testing.T) {
	one := `{"prompt":"p1","kind":"finished","text":"hi","at":1}`
	for name, tt := range map[string]struct {
		file string
		want bool
	}{
		"the prompt's ending": {one, true},
		"another's":           {`{"prompt":"p0","kind":"finished","text":"hi","at":1}`, false},
		"not an ending":       {`{"prompt":"p1","kind":"started","at":1}`, false},
		"an unknown kind":     {`{"prompt":"p1","kind":"later","at":1}`, false},
		"half a file":         {one[:20], false},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			l, _ := openLink(t)
			_, ok := l.Stored("p1")
			is.True(!ok)
			is.NoErr(os.WriteFile(filepath.Join(l.dir, signalFile), []byte(tt.file), 0o600))
			s, ok := l.Stored("p1")
			is.Equal(ok, tt.want)
			if ok {
				is.Equal(s.Text, "hi")
				is.Equal(s.Kind, lifecycle.Finished)
			}
		})
	}
}

func TestReply_ReadsTheSessionFile(t *testing.T) {
	is := is.New(t)
	l, told := openLink(t)
	p := promptID("abc")
	text, err := l.Reply(t.Context(), p)
	is.NoErr(err)
	is.Equal(text, "") // no file yet

	session := filepath.Join(t.TempDir(), "other.jsonl")
	connect(t, l, `"session":"`+session+`"`)
	told.until(t, "up", up)
	is.NoErr(os.WriteFile(session, []byte(`{"type":"session","version":3}
{"type":"message","message":{"role":"user","content":"[sheep:000000000abc]\ndo it"}}
{"type":"message","message":{"role":"assistant","content":[{"type":"thinking","text":"hm"},{"type":"text","text":"look"},{"type":"toolCall"}],"stopReason":"toolUse"}}
{"type":"message","message":{"role":"toolResult","content":[{"type":"text","text":"no"}]}}
{"type":"message","message":{"role":"assistant","content":[{"type":"thinking","text":"hm"},{"type":"text","text":"so "},{"type":"text","text":"far"}],"stopReason":"aborted"}}
{"type":"message","message":{"role":"user","content":[{"type":"text","text":"a human's"}]}}
{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"an answer to that"}]}}
{"type":"message","message":{"role":"assis`), 0o600))
	text, err = l.Reply(t.Context(), p)
	is.NoErr(err)
	is.Equal(text, "so far")
	text, err = l.Reply(t.Context(), promptID("def"))
	is.NoErr(err)
	is.Equal(text, "")
}
