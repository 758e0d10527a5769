package shepherd_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestHexagon holds the direction of the imports: the core packages depend on the standard
// library, google/uuid and each other, in one direction.
func TestHexagon(t *testing.T) {
	const module = "github.com/pi-shepherd/go-shepherd/"
	for pkg, allowed := range map[string][]string{
		"lifecycle": {},
		"notes":     {},
		"watch":     {"lifecycle"},
		"shepherd":  {"lifecycle", "notes", "watch"},
	} {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module+pkg).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for dep := range strings.FieldsSeq(string(out)) {
			own, ours := strings.CutPrefix(dep, module)
			ok := dep == "github.com/google/uuid" || (ours && own == pkg)
			for _, a := range allowed {
				ok = ok || (ours && own == a)
			}
			if !ok {
				t.Errorf("%s depends on %s", pkg, dep)
			}
		}
	}
}
