module github.com/pi-shepherd/go-shepherd

go 1.25.0

require (
	github.com/creack/pty v1.1.24 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/matryer/is v1.4.1 // indirect
	github.com/natefinch/atomic v1.0.1 // indirect
	github.com/spf13/afero v1.15.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)
