package notes

import "testing"

// SmallPages makes pages so small that the few notes of a test fill some.
func SmallPages(t testing.TB, rows int) {
	was := pageRows
	pageRows = rows
	t.Cleanup(func() { pageRows = was })
}
