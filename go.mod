module github.com/pi-shepherd/go-shepherd

go 1.25.0

require (
	github.com/creachadair/jrpc2 v1.3.5
	github.com/creack/pty v1.1.24
	github.com/goccy/go-yaml v1.19.2
	github.com/gofrs/flock v0.13.1
	github.com/google/uuid v1.6.0
	github.com/matryer/is v1.4.1
	github.com/natefinch/atomic v1.0.1
	github.com/spf13/afero v1.15.0
	golang.org/x/sys v0.47.0
)

require (
	github.com/creachadair/mds v0.26.1 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)
