package aferofs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
)

func ExampleOS() {
	project, err := os.MkdirTemp("", "project")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(project)

	f := aferofs.OS(project)
	fmt.Println(f.Create("plan.md", []byte("Find the retry policy.\n")))
	fmt.Println(f.Update("plan.md", func(old []byte) ([]byte, error) {
		return append(old, "Then fix it.\n"...), nil
	}))
	data, _ := f.ReadFile("plan.md")
	fmt.Print(string(data))
	fmt.Println(errors.Is(f.Create("plan.md", nil), fs.ErrExist))
	fmt.Println(aferofs.OS("not/absolute").Err())
	// Output:
	// <nil>
	// <nil>
	// Find the retry policy.
	// Then fix it.
	// true
	// aferofs: root "not/absolute": invalid argument: not an absolute path
}

// A test's story of two processes, one of which dies with a lock in its hands.
func ExampleMemory() {
	ctx := context.Background()
	one := aferofs.Memory()
	two := one.View()

	_, err := one.Lock(ctx, "lock")
	fmt.Println("one has the lock:", err == nil)
	one.Kill()
	unlock, err := two.Lock(ctx, "lock")
	fmt.Println("two has the lock:", err == nil)
	fmt.Println(unlock())
	fmt.Println(errors.Is(one.Create("file", nil), aferofs.ErrKilled))
	// Output:
	// one has the lock: true
	// two has the lock: true
	// <nil>
	// true
}
