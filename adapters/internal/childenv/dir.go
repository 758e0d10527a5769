package childenv

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns a child's working directory as an absolute path; "" is this process's. It is
// looked at before anything is started, because programs and servers say less clearly what is
// wrong with it, or start somewhere else in silence. Errors match fs.ErrNotExist.
func Dir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("working directory: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("working directory: %s is not a directory", dir)
	}
	return dir, nil
}
