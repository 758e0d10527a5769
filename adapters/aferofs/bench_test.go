//go:build unix

package aferofs_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/pi-shepherd/go-shepherd/adapters/aferofs"
)

var sizes = []int{1_000, 30_000, 300_000}

// What a whole-file write costs with and without the directory's sync, and without waiting
// for the disk at all. "bare" is the same with nothing but system calls: the floor.
func BenchmarkWrite(b *testing.B) {
	for _, size := range sizes {
		data := bytes.Repeat([]byte("x"), size)
		change := func(i int) func([]byte) ([]byte, error) {
			return func([]byte) ([]byte, error) { data[0] = byte(i); return data, nil }
		}
		run := func(name string, write func(f *aferofs.FS, i int) error, opts ...aferofs.Option) {
			b.Run(fmt.Sprintf("%s/%dkB", name, size/1000), func(b *testing.B) {
				f := aferofs.OS(b.TempDir(), opts...)
				if err := f.MkdirAll(".shepherd/sessions/0001-x"); err != nil {
					b.Fatal(err)
				}
				for i := range b.N {
					if err := write(f, i); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		const name = ".shepherd/sessions/0001-x/file"
		run("bare", func(f *aferofs.FS, i int) error { data[0] = byte(i); return bareWrite(f.Root()+"/"+name, data) })
		run("SyncAll", func(f *aferofs.FS, i int) error { return f.Update(name, change(i)) })
		run("SyncFiles", func(f *aferofs.FS, i int) error { return f.Update(name, change(i)) },
			aferofs.WithDurability(aferofs.SyncFiles))
		run("Derive", func(f *aferofs.FS, i int) error { data[0] = byte(i); return f.Derive(name, data) })
		run("Create", func(f *aferofs.FS, i int) error { return f.Create(name+strconv.Itoa(i), data) })
	}
}

// bareWrite is temporary file, sync, rename, sync of the directory.
func bareWrite(path string, data []byte) error {
	file, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	dir, err := os.Open(path[:len(path)-len("/file")])
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func BenchmarkRead(b *testing.B) {
	for _, size := range sizes {
		f := aferofs.OS(b.TempDir())
		if err := f.MkdirAll("a/b/c"); err != nil {
			b.Fatal(err)
		}
		if err := f.Create("a/b/c/file", make([]byte, size)); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("ReadFile/%dkB", size/1000), func(b *testing.B) {
			for b.Loop() {
				if _, err := f.ReadFile("a/b/c/file"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("Stamp/%dkB", size/1000), func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Stamp("a/b/c/file"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A lock that nobody else wants, and one that two values hand to each other.
func BenchmarkLock(b *testing.B) {
	lock := func(b *testing.B, f *aferofs.FS) {
		unlock, err := f.Lock(b.Context(), "lock")
		if err == nil {
			err = unlock()
		}
		if err != nil {
			b.Error(err)
		}
	}
	b.Run("free", func(b *testing.B) {
		f := aferofs.OS(b.TempDir())
		for b.Loop() {
			lock(b, f)
		}
	})
	b.Run("handover", func(b *testing.B) {
		dir := b.TempDir()
		b.SetParallelism(2)
		b.RunParallel(func(pb *testing.PB) {
			f := aferofs.OS(dir)
			for pb.Next() {
				lock(b, f)
			}
		})
	})
}

// 16 processes contend for one lock, each for writes of a little over 1 ms: how long they
// wait. The original's worst was 1.6 s.
func BenchmarkLockSixteenProcesses(b *testing.B) {
	for range b.N {
		f := aferofs.OS(b.TempDir())
		if err := f.Create("count", nil); err != nil {
			b.Fatal(err)
		}
		waits := contention(b, f, 16, 50)
		b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "ms-median-wait")
		b.ReportMetric(float64(waits[len(waits)*95/100].Microseconds())/1000, "ms-p95-wait")
		b.ReportMetric(float64(waits[len(waits)-1].Microseconds())/1000, "ms-longest-wait")
	}
}
