package herdr

import "github.com/pi-shepherd/go-shepherd/adapters/internal/link"

// What a link is, and what an implementation of one owes: see the types' own comments.
type (
	// Links makes the links of pi children; pi.Links() does.
	Links = link.Links
	// Link is one child's link.
	Link = link.Link
	// LinkEvent is a child's whole level.
	LinkEvent = link.Event
)
