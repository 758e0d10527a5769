//go:build unix

package pi

import (
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/pi-shepherd/go-shepherd/lifecycle"
)

func TestChild_SaysHelloAndAnswersAPrompt(t *testing.T) {
	is := is.New(t)
	begun := time.Now()
	c := launch(t)
	took := time.Since(begun)
	t.Logf("hello after %v", took)
	is.True(took < 2*time.Second)

	p := c.send("1", "say done")
	s := c.result(p)
	is.Equal(s.Kind, lifecycle.Finished)
	is.Equal(s.Text, "done")
}
