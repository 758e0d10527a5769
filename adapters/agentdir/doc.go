// Package agentdir finds agent definitions: Markdown files in the style of VS Code's custom
// agents, whose front matter names an agent and whose body is its system prompt.
//
//	---
//	name: scout
//	description: Finds out where things are, and says so briefly.
//	tools: read, grep, find, ls
//	---
//
//	You look around in a codebase for somebody else …
//
// [Load] reads them, [Catalog.Find] looks one up, and [Definition.Apply] turns it into the
// arguments of a pi, for agents in panes and for headless ones alike.
//
// # Where definitions come from
//
// From these places, in this order; of several definitions with one name the first counts.
//
//	user      ~/.pi/agent/agents   or where $PI_CODING_AGENT_DIR says
//	user      ~/.agents/agents
//	project   .pi/agents           of the project, or of the nearest directory above that has it
//	project   .agents/agents       likewise
//	bundled   scout, planner, worker, reviewer
//
// Files are called *.agent.md or *.md; hidden ones and subdirectories are left alone, and so
// is a .md without front matter, a README for example.
//
// # What a definition says
//
//	name                      text: at most 64 printable characters; without it, the file's
//	                          name without its suffix
//	description               text, required: what the agent is chosen by
//	model                     text, as pi's --model takes it: provider/id. Left out, null, default
//	                          and inherit mean the parent's. Of a list, the first that has the
//	                          form provider/id counts, so that VS Code's names can stand beside it
//	tools                     a list, or one text with commas: what the agent may use, by pi's
//	                          names. Left out: pi's own choice. []: none. Names that pi does not
//	                          know have no effect
//	omit-system-prompt        true: the body replaces pi's own system prompt; otherwise it is added
//	omit-context-files        true: no AGENTS.md and CLAUDE.md
//	omit-pi-documentation     true: nothing about pi's own documentation. pi has no flag for it, so
//	                          Apply leaves it to whoever can
//	user-invocable            false: not offered to a human
//	disable-model-invocation  true: not offered to a model
//
// Fields of other programs (handoffs, color, …) are ignored. One that looks like a misspelt
// field of ours is an error, because tool: [read] would give the agent every tool; and so is
// disallowedTools, which would be a restriction that does not hold.
//
// The front matter is strict YAML of at most 8 KiB; the fields above take neither anchors nor
// aliases nor tags, and a text that YAML reads as something else (007) needs quotes. A file
// has at most 256 KiB, a directory at most 128 files.
//
// # Whom to believe
//
// The files of a project are written by whoever wrote the project, and tell an agent with a
// shell what to do. They are looked for only when [Options.Scope] says so, and used only when
// [Options.Trust] agrees, directory by directory. Nothing that they say, not even what is
// wrong with them, gets into the catalog before. A link in such a directory that leads out of
// it is not followed. In the user's own directories links are fine.
//
// A file that cannot be read as a definition does not hide the others: [Catalog.Broken] lists
// it. But it keeps its own name taken: somebody whose own scout.md has a mistake in it is told
// so, and does not get another scout with other tools.
//
// Nothing here starts a goroutine, and nothing is remembered between two calls of Load.
package agentdir
