package notes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"

	"github.com/google/uuid"
)

// Identity names a parent session. It is opaque: it is compared, never read. It prints
// redacted, and only its hash is ever written to a file, which is enough to know a parent
// again.
//
// An Identity is its own [ParentIdentity], so a host that knows who it is needs no more:
//
//	notes.Config{Parent: notes.Identity("nightly-review"), …}
type Identity string

// Identity returns i.
func (i Identity) Identity(context.Context) (Identity, error) { return i, nil }

// String returns the first eight hex digits of the identity's hash.
func (i Identity) String() string { return redact(i.hash()) }

// GoString is String: an identity is redacted in every format.
func (i Identity) GoString() string { return `notes.Identity("` + i.String() + `")` }

// LogValue is String.
func (i Identity) LogValue() slog.Value { return slog.StringValue(i.String()) }

// hash is what stands for the identity in files: 64 hex digits.
func (i Identity) hash() string {
	sum := sha256.Sum256([]byte(i))
	return hex.EncodeToString(sum[:])
}

// hashPrefix says in session.json how the identity is represented there.
const hashPrefix = "sha256:"

// redact shortens a hash to what may be shown.
func redact(hash string) string {
	return hash[:min(8, len(hash))]
}

const ephemeralPrefix = "ephemeral:"

// Ephemeral makes an identity up, for a parent that has none of its own (note-session spec,
// Required identity). Keep it for the parent's whole life: a second call is another parent.
// Its session is marked in session.json, and no later process can resume it.
func Ephemeral() Identity { return Identity(ephemeralPrefix + uuid.NewString()) }

func (i Identity) ephemeral() bool { return strings.HasPrefix(string(i), ephemeralPrefix) }

var errNoIdentity = errors.New("notes: the parent session has no identity (Ephemeral makes one up)")
