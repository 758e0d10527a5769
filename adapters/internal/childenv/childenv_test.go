package childenv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestDepth(t *testing.T) {
	tests := map[string]struct {
		environ []string
		want    int
	}{
		"not set":       {[]string{"HOME=/h"}, 0},
		"zero":          {[]string{"SHEPHERD_DEPTH=0"}, 0},
		"two":           {[]string{"SHEPHERD_DEPTH=2"}, 2},
		"the last wins": {[]string{"SHEPHERD_DEPTH=2", "SHEPHERD_DEPTH=1"}, 1},
		"empty":         {[]string{"SHEPHERD_DEPTH="}, 5},
		"words":         {[]string{"SHEPHERD_DEPTH=one"}, 5},
		"negative":      {[]string{"SHEPHERD_DEPTH=-3"}, 5},
		"blank":         {[]string{"SHEPHERD_DEPTH= 1"}, 5},
		"huge":          {[]string{"SHEPHERD_DEPTH=99999999999999999999"}, 5},
		"another name":  {[]string{"XSHEPHERD_DEPTH=3", "SHEPHERD_DEPTHS=3"}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is.New(t).Equal(Depth(tt.environ, 5), tt.want)
		})
	}
}

func TestBuild(t *testing.T) {
	tests := map[string]struct {
		environ []string
		add     []map[string]string
		want    []string
	}{
		"everything else passes, secrets and all": {
			[]string{"HOME=/h", "API_KEY=s3cret", "EMPTY=", "PI_CODING_AGENT_DIR=/a", "PI_CODING_AGENT_SESSION_DIR=/s"}, nil,
			[]string{"HOME=/h", "API_KEY=s3cret", "EMPTY=", "PI_CODING_AGENT_DIR=/a", "PI_CODING_AGENT_SESSION_DIR=/s", "SHEPHERD_DEPTH=1"},
		},
		"the parent's identity stays behind": {
			[]string{"HERDR_PANE_ID=w1:p2", "HERDR_ENV=1", "PI_SESSION_ID=7", "PI_SESSION_FILE=/f", "SHEPHERD_HOST=/sock", "A=b"}, nil,
			[]string{"A=b", "SHEPHERD_DEPTH=1"},
		},
		"the child gets its own": {
			[]string{"HERDR_PANE_ID=w1:p2"}, []map[string]string{{"HERDR_PANE_ID": "w1:p9"}},
			[]string{"HERDR_PANE_ID=w1:p9", "SHEPHERD_DEPTH=1"},
		},
		"later maps come later": {
			[]string{"A=0"}, []map[string]string{{"B": "1", "A": "1"}, {"A": "2"}},
			[]string{"A=0", "A=1", "B=1", "A=2", "SHEPHERD_DEPTH=1"},
		},
		"the depth is not for the asking": {
			[]string{"SHEPHERD_DEPTH=1"}, []map[string]string{{"SHEPHERD_DEPTH": "-9"}},
			[]string{"SHEPHERD_DEPTH=-9", "SHEPHERD_DEPTH=2"}, // the last wins
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			before := slices.Clone(tt.environ)
			got, err := Build(tt.environ, 3, tt.add...)
			is.NoErr(err)
			is.Equal(got, tt.want)
			is.Equal(tt.environ, before) // the parent's own is unchanged
		})
	}
}

func TestBuild_AtTheLimit_IsRefused(t *testing.T) {
	for _, environ := range [][]string{{"SHEPHERD_DEPTH=1"}, {"SHEPHERD_DEPTH=7"}, {"SHEPHERD_DEPTH=x"}} {
		is := is.New(t)
		_, err := Build(environ, 1)
		is.True(errors.Is(err, ErrTooDeep))
	}
}

func TestBuild_ANameThatIsNone_IsRefused(t *testing.T) {
	for name, value := range map[string]string{"": "x", "A=B": "x", "A\x00": "x", "A": "x\x00y"} {
		_, err := Build(nil, 1, map[string]string{name: value})
		is.New(t).True(err != nil)
	}
}

func TestDir(t *testing.T) {
	is := is.New(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	is.NoErr(os.WriteFile(file, nil, 0o600))
	here, err := os.Getwd()
	is.NoErr(err)
	for given, want := range map[string]string{dir: dir, "": here, ".": here} {
		got, err := Dir(given)
		is.NoErr(err)
		is.Equal(got, want)
	}
	_, err = Dir(filepath.Join(dir, "missing"))
	is.True(errors.Is(err, fs.ErrNotExist))
	is.True(strings.Contains(err.Error(), "missing"))
	_, err = Dir(file)
	is.True(strings.Contains(err.Error(), "is not a directory"))
}
