package watch

import "github.com/pi-shepherd/go-shepherd/lifecycle"

// ID names a watcher: "shepherd-watch-<scope>-<uuid>". It is unique across processes.
type ID string

// NotificationID is "<watcher>/<n>", n from 1. It is the same at every offer, so a receiver
// can tell a repetition.
type NotificationID string

// Completion says what became of one watched prompt. It names no pane: the prompt's id is
// what it is known by (watcher spec, Completion notifications).
type Completion struct {
	WatcherID        ID
	lifecycle.Result     // as the registry has it; Waited says that a wait returned it before this was made
	Pending          int // prompts of this watcher that had not settled yet
}

// Notification is one offer to a [Notifier]. Its completions stand in the order in which
// the watcher was given the prompts. Its content never changes under its id.
type Notification struct {
	ID          NotificationID
	WatcherID   ID
	Completions []Completion
	Pending     int // prompts of the watcher that had not settled yet
}

// ReturnCode is the first return code that is not 0, in the order shown, else 0.
func (n Notification) ReturnCode() int {
	for _, c := range n.Completions {
		if c.ReturnCode != 0 {
			return c.ReturnCode
		}
	}
	return 0
}

// Registration is the answer to [Service.Watch].
type Registration struct {
	WatcherID ID
	PromptIDs []lifecycle.PromptID // as given, each once
	Pending   []lifecycle.PromptID // those of which the notifier will be told
	Completed []Completion         // those that had settled; the notifier is not told of them
}

// Undelivered is a notification that the notifier did not take.
type Undelivered struct {
	Notification Notification
	Offers       int   // how often it was offered
	Unknown      bool  // the last call was cut off: it may have been delivered
	Err          error // why, last
}
