// Package headless runs agents as child processes of this one: the runtime that needs no
// Herdr and no terminal. It implements [lifecycle.Herdr].
//
//	h := headless.New(headless.Options{}) // `pi` from PATH
//	defer h.CloseAll(ctx)
//
// Each agent is one pi in RPC mode, JSON lines on its stdin and stdout. What pi says there
// is the link of ruling R2: it alone tells how a prompt ends.
//
//	Submit ──► {"type":"prompt", message: marker line + text} ──► stdin
//	                                                             stdout ──► reader ──► level
//	           agent_start                                   Working, one turn more
//	           message_end, user, with the marker            Started
//	           message_end, assistant                        its text, should it be the last
//	           agent_end, auto_retry_start                   nothing: pi tries again (ruling R4)
//	           agent_settled                                 Finished, Failed or Aborted; Idle
//	           end of the process                            Gone, with exit status and stderr
//
// # What holds
//
//   - The output is read at all times and in bounded memory, whatever the length of its
//     lines: only the texts of assistant messages are kept, and of these the last. A line
//     that is no JSON is logged and skipped.
//   - A busy agent refuses a prompt, in one step with its own state (ruling R8). Nothing is
//     ever sent twice. An agent that does not read its input holds up nobody but its own
//     Submit, which ends with its context.
//   - What the process said before its end is heard before it counts as Gone, so an answer
//     given just before a crash is not lost (ruling R6). The final signal stays readable.
//   - A dialog that one of pi's extensions opens is cancelled at once, as escape would do:
//     nobody is there to answer, and the agent would wait for ever. So Blocked (ruling R5)
//     never occurs here; the agent goes on with a no.
//   - An agent ends with all that it has started. Close gives pi the time to tidy up; what
//     remains of the process group is killed, and on Linux also what has left the group, as
//     pi's shell tools do. The same happens when the agent ends by itself. If this process
//     dies, pi sees the end of its input and ends too.
//   - Agents do not inherit what identifies this process (HERDR_*, PI_SESSION_*,
//     SHEPHERD_*), and know their depth (ruling R16).
//
// # Goroutines
//
//	goroutine                 started by        ends when                       waited for by
//	owner of the process      Launch            the process and the next three  Close, CloseAll
//	reader of stdout          the owner         end of the output               the owner
//	reader of stderr          the owner         end of the output               the owner
//	writer of stdin           the owner         the process has ended           the owner
//
// Nothing polls: everything happens when a line or the end of a process comes.
package headless
