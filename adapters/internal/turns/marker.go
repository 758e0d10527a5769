package turns

import "github.com/pi-shepherd/go-shepherd/lifecycle"

// Wrap returns the text as it is sent to the agent: a marker line, by which the prompt is
// known again in the agent's events, and below it the text, byte for byte. The marker also
// keeps a leading "/" from being taken for one of pi's commands.
func Wrap(s lifecycle.Submission) string { return marker(s.Prompt) + "\n" + s.Text }

// marker names the prompt by the end of its id, which is random: short enough not to
// distract the model.
func marker(p lifecycle.PromptID) string {
	const short = 12
	return "[sheep:" + string(p[max(0, len(p)-short):]) + "]"
}
