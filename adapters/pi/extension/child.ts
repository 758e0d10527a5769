/**
 * The child's half of a link: inside a pi that a shepherd has started, this takes prompts
 * from the host and says how each of them ends. pi 1.3.0 and newer.
 *
 * The host listens on a unix socket in the child's launch directory and puts directory and
 * token into the environment. Both sides send JSON lines:
 *
 *   to the host    hello     the token, the process id and the child's whole level
 *                  answer    to a prompt: taken, or refused and why
 *                  started, settled, blocked, unblocked, working, session
 *                            what has happened, with the whole level
 *   to the child   welcome   the hello was good
 *                  prompt    an id, a text, and the marker by which the text is known again
 *
 * A level is everything the host has to know, so the newest one repairs whatever was missed
 * while the host was away. Each ending is also left in signal.json, for a host that is away
 * longer than this process lives.
 *
 * pi runs the factory again for each reload and each new session, and old handles throw. So
 * the state lives on globalThis and keeps the newest handles. pi waits for its handlers:
 * nothing here waits for the host, everything is caught, and no handle keeps pi alive.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";

const FIRST_RETRY = 50; // ms until a lost host is dialled again; doubled up to LAST_RETRY
const LAST_RETRY = 1_000;
const MAX_LINE = 64 << 20; // bytes of one line from the host
const MAX_TEXT = 8 << 20; // characters of one text to the host: even escaped within its limit of a line
const MAX_UNREAD = 64 << 20; // bytes that a host may leave unread before it counts as away
const HERDR_LIMIT = 2_000; // ms for one report to Herdr

// ---- the story of a turn

/** The child's word about one prompt. */
export type Signal = {
	prompt: string;
	kind: "started" | "finished" | "failed" | "aborted";
	text?: string;
	error?: string;
	code?: number;
	at: number; // ms since 1970
};

/** What shepherd_done has recorded. */
export type Word = { text?: string; error?: string; code?: number };

/** An event of pi, as far as it matters. */
export type Step =
	| { type: "agent_start" }
	| { type: "message_end"; message: any }
	| { type: "agent_settled"; aborted?: boolean }
	| { type: "done"; word: Word };

/** Where the newest prompt stands. Values are replaced, never changed. */
export type Turn = {
	busy: boolean; // from the start of a run until pi has settled, retries and all
	turns: number; // how often pi left its rest
	prompt: string;
	marker: string;
	signal?: Signal;
	ours: boolean; // the newest user message is the prompt
	answer?: { text: string; stop: string; error: string }; // the last one that belongs to the prompt
	word?: Word;
};

/** expect returns the turn waiting for a prompt; what was before it is over. */
export function expect(t: Turn, prompt: string, marker: string): Turn {
	return { busy: t.busy, turns: t.turns, prompt, marker, ours: false };
}

/**
 * next returns the turn moved on by one event. These are the rules of the Go package
 * adapters/internal/turns, which other ways of listening to a pi use; a test holds the two
 * together. Here they know shepherd_done besides.
 */
export function next(t: Turn, e: Step): Turn {
	switch (e.type) {
		case "agent_start":
			return { ...t, busy: true, turns: t.busy ? t.turns : t.turns + 1 };
		case "message_end":
			return t.prompt === "" || isFinal(t.signal) ? t : hear(t, e.message);
		case "done":
			return t.ours && !isFinal(t.signal) ? { ...t, word: e.word } : t;
		case "agent_settled":
			if (t.signal?.kind !== "started") return { ...t, busy: false };
			return { ...t, busy: false, signal: ending(t, e.aborted === true) };
	}
}

function hear(t: Turn, m: any): Turn {
	if (m?.role === "user") {
		if (!textOf(m.content).includes(t.marker)) return { ...t, ours: false };
		const signal: Signal = { prompt: t.prompt, kind: "started", at: Date.now() };
		return { ...t, ours: true, signal, answer: undefined, word: undefined };
	}
	if (m?.role === "assistant" && t.ours) {
		return { ...t, answer: { text: textOf(m.content), stop: m.stopReason ?? "", error: m.errorMessage ?? "" } };
	}
	return t;
}

function ending(t: Turn, aborted: boolean): Signal {
	const { answer, word } = t;
	const end = { prompt: t.prompt, text: cut(word?.text ?? answer?.text ?? ""), at: Date.now() };
	const answered = answer?.stop === "stop" || answer?.stop === "length";
	if ((aborted && t.ours && !answered) || answer?.stop === "aborted") return { ...end, kind: "aborted" };
	if (word) {
		return { ...end, kind: word.error ? "failed" : "finished", error: word.error && cut(word.error), code: word.code };
	}
	if (answer?.stop === "error") {
		return { ...end, kind: "failed", error: cut(answer.error) || "the model call failed; the provider gave no message" };
	}
	if (!answer) return { ...end, kind: "failed", error: "the agent settled without an answer" };
	return { ...end, kind: "finished" };
}

function isFinal(s?: Signal): boolean {
	return s !== undefined && s.kind !== "started";
}

function textOf(content: any): string {
	if (typeof content === "string") return content;
	if (!Array.isArray(content)) return "";
	return content.map((part) => (part?.type === "text" ? (part.text ?? "") : "")).join("");
}

function cut(text: string): string {
	return text.length <= MAX_TEXT ? text : text.slice(0, MAX_TEXT) + "\n[cut here: the text is longer than 8 Mi characters]";
}

// ---- the child

/** What is used of pi. */
type Handler = (event: any, ctx: any) => unknown;
type Pi = {
	on(event: string, handler: Handler): void;
	sendUserMessage(text: string, options: { deliverAs: "followUp" }): void;
	registerTool(tool: object): void;
	getAllTools(): { name: string }[];
};

type Child = {
	dir: string;
	token: string;
	role: string; // goes into the system prompt
	pi?: Pi;
	ctx?: any; // the current session's; none between two sessions
	turn: Turn;
	dialog: boolean;
	session: string; // the session's file

	socket?: Socket;
	told?: Signal; // what the host at the other end of socket has heard
	retry: number;

	herdr?: { socket: string; pane: string };
	shown: string; // the state that Herdr was told last
	showing: boolean; // a report is on its way
	seq: number;
};

const KEY = Symbol.for("shepherd.child/1");

/** The one child of this process; null where no shepherd has started it. */
function self(): Child | null {
	const home = globalThis as { [KEY]?: Child | null };
	if (home[KEY] === undefined) home[KEY] = born(process.env);
	return home[KEY];
}

function born(env: NodeJS.ProcessEnv): Child | null {
	const dir = env.SHEPHERD_LINK;
	const token = env.SHEPHERD_LINK_TOKEN;
	delete env.SHEPHERD_LINK; // what this pi starts is somebody else
	delete env.SHEPHERD_LINK_TOKEN;
	if (!dir || !token) return null;

	const { HERDR_ENV, HERDR_SOCKET_PATH: socket, HERDR_PANE_ID: pane } = env;
	return {
		dir,
		token,
		role: readOr(join(dir, "role.md"), ""),
		turn: { busy: false, turns: 0, prompt: "", marker: "", ours: false },
		dialog: false,
		session: "",
		retry: FIRST_RETRY,
		herdr: HERDR_ENV === "1" && socket && pane ? { socket, pane } : undefined,
		shown: "idle", // Herdr finds that out by itself
		showing: false,
		seq: 0,
	};
}

function readOr(path: string, otherwise: string): string {
	try {
		return readFileSync(path, "utf8");
	} catch {
		return otherwise;
	}
}

/** child is pi's factory: it runs at the start, at each reload and for each new session. */
export default function child(pi: Pi): void {
	const c = self();
	if (!c) return;
	c.pi = pi;
	c.ctx = undefined;

	const on = (event: string, handler: Handler) =>
		pi.on(event, (e, ctx) => {
			try {
				return handler(e, ctx);
			} catch {
				return undefined; // ours to bear, not pi's
			}
		});

	on("session_start", (_, ctx) => {
		c.ctx = ctx;
		c.session = ctx.sessionManager?.getSessionFile?.() ?? "";
		offerDone(c, pi);
		tell(c, "session");
		dial(c);
	});
	on("session_shutdown", (e) => {
		c.ctx = undefined;
		c.dialog = false; // its end would be told to nobody
		if (e.reason !== "reload") abandon(c);
		tell(c, "session");
	});
	on("before_agent_start", (e) => (c.role ? { systemPrompt: `${e.systemPrompt}\n\n${c.role}` } : undefined));
	for (const type of ["agent_start", "message_end", "agent_settled"] as const) {
		on(type, (e) => move(c, { ...e, type }));
	}
	on("ui_prompt_start", () => ask(c, true));
	on("ui_prompt_end", () => ask(c, false));
}

/** move advances the turn and tells whoever has to know. */
function move(c: Child, e: Step): void {
	const before = c.turn;
	c.turn = next(before, e);
	if (c.turn.signal !== before.signal) {
		if (isFinal(c.turn.signal)) keep(c, c.turn.signal);
		tell(c, isFinal(c.turn.signal) ? "settled" : "started");
	} else if (c.turn.busy !== before.busy) {
		tell(c, c.turn.busy ? "working" : "settled");
	}
	show(c);
}

function ask(c: Child, open: boolean): void {
	c.dialog = open;
	tell(c, open ? "blocked" : "unblocked");
	show(c);
}

/** abandon ends a prompt whose session is over: nothing more can come of it. */
function abandon(c: Child): void {
	const { prompt, signal } = c.turn;
	if (prompt !== "" && !isFinal(signal)) {
		c.turn = { ...c.turn, ours: true, signal: signal ?? { prompt, kind: "started", at: Date.now() } };
	}
	move(c, { type: "agent_settled", aborted: true });
}

/** keep leaves the ending on disk: whole or not at all. */
function keep(c: Child, s: Signal | undefined): void {
	try {
		const path = join(c.dir, "signal.json");
		writeFileSync(path + ".new", JSON.stringify(s), { mode: 0o600 });
		renameSync(path + ".new", path);
	} catch {
		// The disk is full, or the directory is gone with its host: the socket has to do.
	}
}

// ---- shepherd_done

/**
 * offerDone registers the tool unless the name is taken, by us or another extension. Not in
 * the factory: two extensions with one tool name keep pi from starting, one that comes late
 * does not.
 */
function offerDone(c: Child, pi: Pi): void {
	if (pi.getAllTools().some((tool) => tool.name === "shepherd_done")) return;
	pi.registerTool({
		name: "shepherd_done",
		label: "Record the outcome",
		description:
			"Record the outcome of the task that your orchestrator gave you. Only needed when the task failed, when a return code " +
			"is asked for, or when the result is to be another text than your last message. It does not end your turn: finish " +
			"it as usual afterwards. The last call counts.",
		parameters: {
			type: "object",
			properties: {
				text: { type: "string", description: "The result, in place of your last message" },
				error: { type: "string", description: "Why the task failed; leave it out when it did not" },
				returnCode: { type: "integer", minimum: 0, maximum: 255, description: "0 for success" },
			},
		},
		async execute(_id: string, params: any) {
			const before = c.turn;
			move(c, { type: "done", word: { text: given(params?.text), error: given(params?.error), code: number(params?.returnCode) } });
			const text =
				c.turn !== before
					? "Recorded. Your orchestrator gets it when your turn ends."
					: "Nothing was recorded: no task of your orchestrator is being worked on.";
			return { content: [{ type: "text", text }], details: {} };
		},
	});
}

/** given: models send "" and "null" for what they leave out. */
function given(v: unknown): string | undefined {
	return typeof v === "string" && v !== "" && v !== "null" ? v : undefined;
}

function number(v: unknown): number | undefined {
	const n = typeof v === "string" && v.trim() !== "" ? Number(v) : v;
	return Number.isInteger(n) && (n as number) >= 0 && (n as number) <= 255 ? (n as number) : undefined;
}

// ---- the link

/** dial connects, and goes on trying as long as the launch directory is there. */
function dial(c: Child): void {
	if (c.socket) return;
	const s = connect(join(c.dir, "link"));
	c.socket = s;
	s.unref();
	s.on("connect", () => {
		c.told = undefined;
		say(c, { type: "hello", protocol: 1, token: c.token, pid: process.pid });
	});
	readLines(s, (line) => receive(c, line));
	s.on("error", () => {}); // "close" follows
	s.on("close", () => {
		c.socket = undefined;
		if (!existsSync(c.dir)) return; // the host has closed this link for good
		setTimeout(dial, c.retry, c).unref();
		c.retry = Math.min(c.retry * 2, LAST_RETRY);
	});
}

function readLines(s: Socket, line: (text: string) => void): void {
	let parts: Buffer[] = [];
	let size = 0;
	s.on("data", (chunk: Buffer) => {
		for (let end; (end = chunk.indexOf(10)) >= 0; chunk = chunk.subarray(end + 1)) {
			const whole = Buffer.concat([...parts, chunk.subarray(0, end)]).toString("utf8");
			parts = [];
			size = 0;
			line(whole);
		}
		parts.push(chunk);
		size += chunk.length;
		if (size > MAX_LINE) s.destroy();
	});
}

function receive(c: Child, line: string): void {
	try {
		const m = JSON.parse(line);
		if (m?.type === "welcome") c.retry = FIRST_RETRY;
		if (m?.type === "prompt") take(c, m);
	} catch {
		// Not JSON: of no use, and no reason to stop.
	}
}

/** take hands a prompt to pi, or says why not. A refusal changes nothing. */
function take(c: Child, m: { prompt: string; marker: string; text: string }): void {
	const before = c.turn;
	let why = refusal(c);
	if (why === "") {
		c.turn = expect(before, m.prompt, m.marker);
		try {
			c.pi?.sendUserMessage(m.text, { deliverAs: "followUp" });
		} catch (err) {
			c.turn = before;
			why = String(err);
		}
	}
	say(c, { type: "answer", prompt: m.prompt, refused: why || undefined });
}

function refusal(c: Child): string {
	if (!c.ctx) return "busy: between two sessions";
	if (!c.ctx.isIdle()) return "busy: a turn or a compaction is running";
	if (!c.ctx.model) return "no model is selected; choose one with /model";
	return "";
}

function tell(c: Child, type: string): void {
	if (c.socket && !c.socket.connecting) say(c, { type });
}

/**
 * say sends one message with the level; the signal, which may be long, only if the host has
 * not heard it. A host that does not read is let go of: the next hello tells it everything.
 */
function say(c: Child, message: object): void {
	const s = c.socket;
	if (!s || s.destroyed) return;
	if (s.writableLength > MAX_UNREAD) {
		s.destroy();
		return;
	}
	const { busy, turns, signal } = c.turn;
	const level = { busy, dialog: c.dialog, turns, session: c.session, signal: signal === c.told ? undefined : signal };
	c.told = signal;
	s.write(JSON.stringify({ ...message, level }) + "\n");
}

// ---- Herdr

/** show tells Herdr, for the user's eyes, what this pi is doing. Only the newest state matters. */
function show(c: Child): void {
	const state = c.dialog ? "blocked" : c.turn.busy ? "working" : "idle";
	if (!c.herdr || c.showing || state === c.shown) return;
	c.showing = true;
	c.shown = state;
	c.seq = Math.max(c.seq + 1, Date.now()); // goes up also when pi is started again
	const params = { pane_id: c.herdr.pane, source: "shepherd:child", agent: "pi", state, seq: c.seq };
	const s = connect(c.herdr.socket);
	s.unref();
	s.setTimeout(HERDR_LIMIT, () => s.destroy());
	s.on("connect", () => s.write(JSON.stringify({ id: `shepherd-${c.seq}`, method: "pane.report_agent", params }) + "\n"));
	s.on("error", () => {});
	s.on("close", () => {
		c.showing = false;
		show(c);
	});
	s.resume();
}
