/**
 * The bridge into a parent pi: it gives the model shepherd's tools, and brings the news of
 * children that have finished into the session. pi 1.3.0 and newer.
 *
 * The work is done by a host, the Go program shepherd-pi. It is started at the first need,
 * detached, and talks JSON-RPC 2.0 lines on its stdio; or it runs already and is reached by a
 * unix socket (SHEPHERD_PI_SOCKET, SHEPHERD_PI_TOKEN). What goes over the line is described in
 * bridge_wire.go.
 *
 * pi runs the factory again for each reload and each new session, and old handles throw. So
 * the state lives on globalThis and keeps the newest handles, and the host lives through all
 * of it. pi waits for its handlers: none waits for the host, except for one second at quit.
 *
 * A notice is delivered when it stands in the session: its receipt is a custom_message entry
 * with its id. pi's own queue is invisible and wiped by Escape, so notices wait in a queue
 * here and are handed over, all that wait as one message, only while pi is idle. What then
 * has no receipt is handed over again under its ids.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PROTOCOL = 1;
const TYPE = "shepherd.prompt.completion";
const QUIET = 250; // ms without a further notice before an idle pi gets what waits
const LOOK_AGAIN = 1_000; // ms between looks at what still waits
const GOODBYE = 1_000; // ms for the host's answer at quit
const RESTARTS = 3; // of a host that ends, within MINUTE
const MINUTE = 60_000;
const MAX_LINE = 64 << 20; // bytes of one line from the host
const SESSION_OVER = 1; // the error code that refuses a notice
const HERE = dirname(fileURLToPath(import.meta.url));
const INSTALL = "go install github.com/pi-shepherd/go-shepherd/examples/shepherd-pi@latest";
const REINSTALL = "shepherd-pi -install";

// ---- what is used of pi, and what goes over the line

type Handler = (event: any, ctx: any) => unknown;
type Pi = {
	on(event: string, handler: Handler): void;
	registerTool(tool: object): void;
	registerCommand(name: string, options: object): void;
	registerMessageRenderer(type: string, renderer: (message: any, options: any, theme: any) => Component): void;
	sendMessage(message: object, options: object): void;
};
type Component = { render(width: number): string[]; invalidate(): void; dispose?(): void };
type Content = { content: { type: "text"; text: string }[]; details: any; isError?: boolean };

/** One completion. */
export type Item = {
	watcherId: string;
	promptId: string;
	agentId: string;
	agent: string;
	label: string;
	status: string;
	ok: boolean;
	returnCode: number;
	error?: string;
	text?: string;
	notePath?: string;
	noteError?: string;
	inferred?: boolean;
	waited?: boolean;
	pending: number;
	seconds?: number;
	input: number; // the prompt's place in its watch
};
/** One notification of a watcher, for one session. */
export type Notice = { id: string; watcherId: string; order: number; session: string; items: Item[]; quiet?: boolean };
type Watch = { watcherId: string; order: number; last: number; prompts: { promptId: string }[] };
/** One agent of the herd. */
export type Child = { id: string; agent: string; label: string; state: string; since: number; until?: number };

// ---- the bridge

type Session = { id: string; file: string; mode: string; dir: string };

type Bridge = {
	pi?: Pi;
	ctx?: any; // the current session's; old ones throw
	session?: Session; // the one whose notices are taken; none between two sessions
	reloading: boolean;
	compacting: boolean;

	queue: Notice[]; // taken over, not handed to pi
	handed: Map<string, Notice>; // handed to pi, without a receipt
	seen: Set<string>; // stands in the session
	timer?: NodeJS.Timeout;
	idleLooks: number; // in a row, with something handed over or held

	host?: Host;
	booting?: Host; // has not answered the hello yet
	starting?: Promise<Host>;
	entered?: Promise<void>; // the host knows the session
	replaced: boolean; // the host is not the one that the watches were registered with
	restarts: number[]; // when
	quitting: boolean;
	ephemeral: string;
	watches: Map<string, Watch>; // with something open
	herd: Child[];
	names: Map<string, string>; // of agents and prompts, for people
	updates: Set<(content: Content) => void>; // of tool calls that wait
	warned: Set<string>;
};

const KEY = Symbol.for("shepherd.parent/1");

function bridge(): Bridge {
	const home = globalThis as { [KEY]?: Bridge };
	return (home[KEY] ??= {
		reloading: false,
		compacting: false,
		queue: [],
		handed: new Map(),
		seen: new Set(),
		idleLooks: 0,
		replaced: false,
		restarts: [],
		quitting: false,
		ephemeral: "",
		watches: new Map(),
		herd: [],
		names: new Map(),
		updates: new Set(),
		warned: new Set(),
	});
}

/** parent is pi's factory: it runs at the start, at each reload and for each new session. */
export default function parent(pi: Pi): void {
	if (tooDeep(process.env)) return; // we are somebody's child
	const b = bridge();
	b.pi = pi;
	b.ctx = undefined;

	const on = (event: string, handler: Handler) =>
		pi.on(event, (e, ctx) => {
			try {
				return handler(e, ctx);
			} catch {
				return undefined; // ours to bear, not pi's
			}
		});
	on("session_start", (e, ctx) => begin(b, e.reason, ctx));
	on("session_shutdown", (e) => end(b, e.reason));
	on("message_end", (e) => {
		if (e.message?.role === "custom" && e.message.customType === TYPE) scan(b);
	});
	on("agent_settled", (e) => settled(b, e.aborted === true));
	on("session_before_compact", (e) => {
		if (e.reason === "manual") b.compacting = true;
	});
	for (const event of ["session_compact", "session_compact_failed"]) {
		on(event, () => {
			b.compacting = false;
			look(b, QUIET);
		});
	}
	for (const tool of toolList()) pi.registerTool(toolFor(b, tool));
	pi.registerMessageRenderer(TYPE, drawNotice);
	pi.registerCommand("shepherd", command(b));
}

/** tooDeep: an agent starts no agents, unless its host raises the limit. */
export function tooDeep(env: NodeJS.ProcessEnv): boolean {
	const limit = whole(env.SHEPHERD_MAX_DEPTH, 1);
	return whole(env.SHEPHERD_DEPTH, env.SHEPHERD_DEPTH === undefined ? 0 : limit) >= limit;
}

function whole(text: string | undefined, otherwise: number): number {
	return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : otherwise;
}

// ---- the life of sessions

function begin(b: Bridge, reason: string, ctx: any): void {
	const id: string = ctx.sessionManager.getSessionId();
	const same = b.session?.id === id;
	if (!same) {
		b.queue = []; // what was not given out is in the host's ledger
		b.handed.clear();
		b.watches.clear();
		b.herd = [];
		b.ephemeral = "";
		b.entered = undefined;
		b.replaced = false;
	}
	b.ctx = ctx;
	b.session = { id, file: ctx.sessionManager.getSessionFile() ?? "", mode: ctx.mode ?? "", dir: ctx.cwd };
	b.reloading = false;
	b.compacting = false;
	b.seen = new Set(noticesIn(b));
	for (const { message: m } of entries(b)) if (m?.role === "toolResult") remember(b, m.toolName, m.details ?? {});
	again(b);
	if (later(b) && (b.host || b.starting || hasTraces(b))) {
		enter(b, !same).catch((e) => complain(b, e));
	}
	showHerd(b);
	look(b, QUIET);
}

/** later: this pi has turns after the present one. */
function later(b: Bridge): boolean {
	return b.session !== undefined && b.session.mode !== "print" && b.session.mode !== "json";
}

/** hasTraces: shepherd was used in this session, so its host may have something to tell. */
function hasTraces(b: Bridge): boolean {
	return entries(b).some(
		(e) => e.customType === TYPE || (e.message?.role === "toolResult" && String(e.message.toolName).startsWith("shepherd_")),
	);
}

function end(b: Bridge, reason: string): Promise<void> | undefined {
	scan(b);
	b.ctx = undefined;
	if (reason === "reload") {
		b.reloading = true; // notices are taken and held
		return undefined;
	}
	const session = b.session?.id;
	b.session = undefined;
	b.queue = []; // the ledger has them, for this session's return
	b.handed.clear();
	b.watches.clear();
	b.entered = undefined;
	clearTimeout(b.timer);
	const goodbye = b.host && session ? b.host.call("leave", { session, reason }) : undefined;
	if (reason !== "quit") {
		goodbye?.catch(() => {});
		return undefined;
	}
	b.quitting = true;
	return b.host ? b.host.close(goodbye) : b.booting?.abandon();
}

/**
 * enter tells the host which session pi shows, and takes what has no receipt yet. At the
 * begin of a stay that is left from an earlier one and asks for no turn. A new host is told
 * the watches of the one before.
 */
function enter(b: Bridge, begins: boolean): Promise<void> {
	const session = b.session;
	if (!session) return Promise.reject(new Error("shepherd: no session is open"));
	const entered = (async () => {
		const host = await start(b);
		const answer = await host.call("session", {
			...session,
			model: model(b),
			restart: b.replaced,
			seen: [...b.seen],
			watches: b.replaced ? [...b.watches.values()] : [],
			ephemeral: b.ephemeral,
			program: program(),
		});
		if (b.session?.id !== session.id) return;
		b.replaced = false;
		b.ephemeral = answer.ephemeral ?? "";
		if (answer.warning) warn(b, answer.warning);
		if (!later(b)) return;
		for (const n of answer.again ?? []) {
			if (!known(b, n.id)) b.queue.push({ ...n, quiet: begins });
		}
		look(b, QUIET);
	})();
	b.entered = entered;
	entered.catch(() => {
		if (b.entered === entered) b.entered = undefined; // the next call tries again
	});
	return entered;
}

/** ready is the host, knowing the current session. */
async function ready(b: Bridge): Promise<Host> {
	await (b.host && b.entered ? b.entered : enter(b, false));
	if (!b.host) throw new Error("shepherd's host has just ended; try again");
	return b.host;
}

/** program is how this very pi was started; its children run the same. */
function program(): string[] {
	const main = process.argv[1] ?? "";
	return existsSync(main) ? [process.execPath, main] : [];
}

function model(b: Bridge): string {
	try {
		const m = b.ctx?.model;
		return m ? `${m.provider}/${m.id}` : "";
	} catch {
		return "";
	}
}

// ---- delivery

function known(b: Bridge, id: string): boolean {
	return b.seen.has(id) || b.handed.has(id) || b.queue.some((n) => n.id === id);
}

/** take answers the host: from here on the notice is ours to deliver. */
function take(b: Bridge, n: Notice): void {
	if (!b.session || n.session !== b.session.id) throw new Refusal("that session is not open");
	const w = b.watches.get(n.watcherId);
	if (w) {
		const told = new Set(n.items.map((i) => i.promptId));
		w.prompts = w.prompts.filter((p) => !told.has(p.promptId));
		w.last = Math.max(w.last, Number(n.id.slice(n.id.lastIndexOf("/") + 1)) || 0);
		if (w.prompts.length === 0) b.watches.delete(w.watcherId);
	}
	if (known(b, n.id)) return;
	b.queue.push(n);
	look(b, QUIET);
}

/** look hands over in a while, and goes on looking as long as something waits. */
function look(b: Bridge, ms: number): void {
	clearTimeout(b.timer);
	b.timer = setTimeout(() => {
		if (!idle(b)) b.idleLooks = 0;
		else if (++b.idleLooks >= 3) {
			// pi has been idle for a while: what was handed over is lost, or stored; a
			// compaction whose end nobody told is over.
			b.idleLooks = 0;
			b.compacting = false;
			again(b);
		}
		handOver(b, true);
		if (b.queue.length > 0 || b.handed.size > 0) look(b, LOOK_AGAIN);
	}, ms);
	b.timer.unref();
}

function idle(b: Bridge): boolean {
	try {
		return b.ctx?.isIdle() === true;
	} catch {
		return false; // the handle is stale: between two sessions
	}
}

/**
 * handOver gives pi everything that waits, as one message. It starts a turn, unless nothing
 * asks for one: notices of an earlier stay, and those that wait when the user says Escape.
 */
function handOver(b: Bridge, turn: boolean): void {
	if (b.queue.length === 0 || b.handed.size > 0 || b.reloading || b.compacting || !b.session || !later(b) || !idle(b)) return;
	const notices = b.queue.sort((x, y) => x.order - y.order);
	b.queue = [];
	for (const n of notices) b.handed.set(n.id, n);
	b.idleLooks = 0;
	const triggerTurn = turn && notices.some((n) => !n.quiet);
	try {
		b.pi?.sendMessage(message(notices), triggerTurn ? { deliverAs: "followUp", triggerTurn } : { triggerTurn });
	} catch {
		b.handed.clear(); // the handle is stale; the next session's start looks again
		b.queue = notices;
	}
	if (!triggerTurn) scan(b); // no event tells that it is stored
}

/** settled runs when pi has come to rest, also just before a session is left in mid-run. */
function settled(b: Bridge, aborted: boolean): void {
	again(b);
	handOver(b, !aborted);
	if (b.queue.length > 0) look(b, QUIET);
}

/** again puts what was handed over and is not stored back to the front. */
function again(b: Bridge): void {
	scan(b);
	b.queue = [...b.handed.values(), ...b.queue];
	b.handed.clear();
}

/** scan looks for receipts in the session, on all its branches. */
function scan(b: Bridge): void {
	if (b.handed.size === 0 && b.queue.length === 0) return;
	const there = noticesIn(b);
	receive(
		b,
		there.filter((id) => b.handed.has(id) || b.queue.some((n) => n.id === id)),
	);
}

function receive(b: Bridge, ids: string[]): void {
	if (ids.length === 0) return;
	for (const id of ids) {
		b.seen.add(id);
		b.handed.delete(id);
	}
	b.queue = b.queue.filter((n) => !b.seen.has(n.id));
	if (b.session) b.host?.notify("receipts", { session: b.session.id, ids });
}

function entries(b: Bridge): any[] {
	try {
		return b.ctx?.sessionManager.getEntries() ?? [];
	} catch {
		return [];
	}
}

function noticesIn(b: Bridge): string[] {
	return entries(b).flatMap((e) => (e.type === "custom_message" && e.customType === TYPE ? (e.details?.ids ?? []) : []));
}

/**
 * message is what pi stores and the model reads, in the structure of shepherd's tool results.
 * Each completion is one line of JSON, so no text of a child can end it.
 */
export function message(notices: Notice[]): object {
	const items = notices
		.flatMap((n) => n.items.map((item) => ({ order: n.order, item })))
		.sort((x, y) => x.order - y.order || x.item.input - y.item.input)
		.map(({ item }) => item);
	const ids = items.map((i) => i.promptId);
	const code = items.find((i) => i.returnCode !== 0)?.returnCode ?? 0;
	const content = [
		`shepherd_watcher completion${items.length === 1 ? "" : "s"}: ${items.map((i) => `${titleOf(i)} ${i.status}`).join(", ")}`,
		"",
		"call:",
		`    shepherd_watch ${JSON.stringify({ id: ids.length === 1 ? ids[0] : ids })}`,
		"",
		"return:",
		`    [${items.map(({ seconds, input, ...item }) => JSON.stringify(item)).join(",\n     ")}]`,
		"",
		"details:",
		...[...new Set(items.map((i) => i.watcherId))].map((id) => `   watcher id: ${id}`),
		`   prompt ids: ${JSON.stringify(ids)}`,
		`   return code: ${code}`,
	].join("\n");
	const details = { v: 1, ids: notices.map((n) => n.id), items: items.map(({ text, input, ...item }) => item) };
	return { customType: TYPE, content, display: true, details };
}

/** textsOf reads the completions' texts back out of a message. */
export function textsOf(content: any): Map<string, string> {
	const all = typeof content === "string" ? content : (content ?? []).map((p: any) => p?.text ?? "").join("");
	const from = all.indexOf("\nreturn:\n") + "\nreturn:\n".length;
	const texts = new Map<string, string>();
	try {
		for (const i of JSON.parse(all.slice(from, all.indexOf("\n\ndetails:\n", from)))) texts.set(i.promptId, i.text ?? "");
	} catch {
		// Written by another version: shown without texts.
	}
	return texts;
}

function titleOf(i: { agent: string; label: string }): string {
	const name = i.agent || "unknown";
	return plain(i.label ? `${name}: ${i.label}` : name);
}

// ---- tools

type ToolEntry = { name: string; label: string; description: string; parameters: object };

let tools: string | undefined; // the file, as it is hashed

function toolFile(): string {
	return (tools ??= readFileSync(join(HERE, "tools.json"), "utf8"));
}

function toolList(): ToolEntry[] {
	return JSON.parse(toolFile());
}

function toolFor(b: Bridge, tool: ToolEntry): object {
	return {
		...tool,
		execute: (id: string, args: any, signal?: AbortSignal, onUpdate?: (c: Content) => void) => call(b, tool.name, id, args, signal, onUpdate),
		renderCall: (args: any, theme: any) => drawCall(b, tool.name, args ?? {}, theme),
		renderResult: (result: any, options: any, theme: any) => drawResult(result, options, theme),
	};
}

const plainly = (text: string, isError: boolean, details: any = {}): Content => ({ content: [{ type: "text", text }], details, isError });

async function call(b: Bridge, name: string, id: string, args: any, signal?: AbortSignal, onUpdate?: (c: Content) => void): Promise<Content> {
	const update = name === "shepherd_wait" && onUpdate ? onUpdate : undefined;
	if (update) b.updates.add(update);
	let stop = () => {};
	const stopped = new Promise<Content>((resolve) => {
		stop = () => {
			b.host?.notify("cancel", { call: id });
			resolve(plainly("stopped by the user; agents that were started go on", true));
		};
	});
	signal?.addEventListener("abort", stop, { once: true });
	if (signal?.aborted) stop();
	try {
		return await Promise.race([stopped, ask(b, name, id, args, signal)]);
	} catch (e) {
		return plainly((e as Error).message, true);
	} finally {
		if (update) b.updates.delete(update);
		signal?.removeEventListener("abort", stop);
	}
}

async function ask(b: Bridge, name: string, id: string, args: any, signal?: AbortSignal): Promise<Content> {
	const host = await ready(b);
	if (signal?.aborted) return plainly("stopped by the user", true);
	const r = await host.call("tool", { session: b.session?.id ?? "", call: id, name, args: args ?? {}, model: model(b) });
	remember(b, name, r.details ?? {});
	return plainly(r.text, r.isError, r.details ?? {});
}

/** remember keeps what an agent or a prompt is called, to show that instead of ids. */
function remember(b: Bridge, tool: string, details: any): void {
	const { agentId, promptId } = details;
	if (tool === "shepherd_start" && agentId && details.return) b.names.set(agentId, titleOf(details.return));
	if (tool === "shepherd_prompt" && promptId) b.names.set(promptId, nameOf(b, agentId));
}

// ---- the host

class Refusal extends Error {}

/** Host is the line to the host, however that is reached. */
class Host {
	dead = false;
	#calls = new Map<number, { resolve: (v: any) => void; reject: (e: Error) => void }>();
	#next = 0;
	#line: Line;
	#serve: (method: string, params: any) => unknown;

	constructor(line: Line, serve: (method: string, params: any) => unknown, ended: (why: string) => void) {
		this.#line = line;
		this.#serve = serve;
		line.listen(
			(text) => this.#hear(text),
			(why) => {
				if (this.dead) return;
				this.dead = true;
				const lost = new Error(
					`shepherd's host ended (${why}). The call may have been carried out, or not: look with shepherd_status before you repeat it.`,
				);
				for (const c of this.#calls.values()) c.reject(lost);
				this.#calls.clear();
				ended(why);
			},
		);
		line.ref(false);
	}

	call(method: string, params: object): Promise<any> {
		if (this.dead) return Promise.reject(new Error("shepherd's host has ended"));
		const id = ++this.#next;
		return new Promise((resolve, reject) => {
			this.#calls.set(id, { resolve, reject });
			this.#line.ref(true); // pi may not run out of handles while it waits for us
			this.#line.write({ jsonrpc: "2.0", id, method, params });
		});
	}

	notify(method: string, params: object): void {
		if (!this.dead) this.#line.write({ jsonrpc: "2.0", method, params });
	}

	/** close hangs up, and kills a host of ours that does not say goodbye. */
	async close(goodbye?: Promise<any>): Promise<void> {
		const answered = await Promise.race([
			(goodbye ?? Promise.resolve()).then(
				() => true,
				() => true,
			),
			new Promise<boolean>((resolve) => setTimeout(resolve, GOODBYE, false)),
		]);
		this.dead = true;
		this.#line.end(!answered);
	}

	/** abandon ends a host that does not even answer the hello. */
	async abandon(): Promise<void> {
		this.dead = true;
		this.#line.end(true);
	}

	#hear(text: string): void {
		let m: any;
		try {
			m = JSON.parse(text);
		} catch {
			return;
		}
		if (typeof m?.method === "string") {
			void this.#answer(m);
			return;
		}
		const call = this.#calls.get(m?.id);
		if (!call) return;
		this.#calls.delete(m.id);
		if (this.#calls.size === 0) this.#line.ref(false);
		if (m.error) call.reject(new Error(String(m.error.message)));
		else call.resolve(m.result);
	}

	async #answer(m: any): Promise<void> {
		let answer: object;
		try {
			answer = { result: (await this.#serve(m.method, m.params)) ?? {} };
		} catch (e) {
			answer = { error: { code: e instanceof Refusal ? SESSION_OVER : -32000, message: (e as Error).message } };
		}
		if (m.id !== undefined) this.#line.write({ jsonrpc: "2.0", id: m.id, ...answer });
	}
}

/** Line is a connection that carries lines. */
type Line = {
	listen(line: (text: string) => void, ended: (why: string) => void): void;
	write(message: object): void;
	ref(on: boolean): void;
	end(kill: boolean): void;
};

function serve(b: Bridge, method: string, params: any): unknown {
	switch (method) {
		case "notice":
			return take(b, params);
		case "watch":
			b.watches.set(params.watcherId, params);
			return undefined;
		case "herd":
			if (params.session !== b.session?.id) return undefined;
			b.herd = params.children ?? [];
			showHerd(b);
			for (const update of b.updates) update(plainly(progress(b), false));
			return undefined;
		case "confirm":
			return b.ctx?.hasUI ? Promise.resolve(b.ctx.ui.confirm(params.title, params.message)).then((ok) => ({ ok: ok === true })) : { ok: false };
	}
	throw new Error(`unknown method ${method}`);
}

function progress(b: Bridge): string {
	return b.herd.map((c) => `${titleOf(c)} ${c.state} ${age(ageOf(c))}`).join("\n");
}

/** start returns the host that runs, or starts one. */
function start(b: Bridge): Promise<Host> {
	if (b.host) return Promise.resolve(b.host);
	return (b.starting ??= boot(b).finally(() => {
		b.starting = undefined;
	}));
}

async function boot(b: Bridge): Promise<Host> {
	const path = process.env.SHEPHERD_PI_SOCKET ? "" : find(process.env);
	const line = path ? spawned(path) : dialled(process.env.SHEPHERD_PI_SOCKET as string);
	let fresh: Host | undefined;
	const host = new Host(
		line,
		(method, params) => serve(b, method, params),
		(why) => {
			if (fresh && b.host === fresh) lost(b, why);
		},
	);
	b.booting = host;
	try {
		await greet(b, host, path);
	} finally {
		b.booting = undefined;
	}
	fresh = host;
	b.host = host;
	return host;
}

async function greet(b: Bridge, host: Host, path: string): Promise<void> {
	const hash = createHash("sha256").update(toolFile()).digest("hex");
	const welcome = await host.call("hello", { protocol: PROTOCOL, token: process.env.SHEPHERD_PI_TOKEN ?? "", tools: hash, pid: process.pid });
	if (welcome.protocol !== PROTOCOL) {
		await host.close();
		const [old, update] = welcome.protocol < PROTOCOL ? [path || "the host", INSTALL] : ["this extension", REINSTALL];
		throw new Error(`shepherd: ${old} is too old: the host speaks bridge protocol ${welcome.protocol}, the extension ${PROTOCOL}. Update with: ${update}`);
	}
	if (welcome.tools !== hash) warn(b, `extension and shepherd-pi ${welcome.version} are of different versions; update with: ${INSTALL} && ${REINSTALL}`);
}

/** find returns the host's program; the error says where it was looked for. */
export function find(env: NodeJS.ProcessEnv): string {
	const name = process.platform === "win32" ? "shepherd-pi.exe" : "shepherd-pi";
	const places = env.SHEPHERD_PI
		? [env.SHEPHERD_PI]
		: [join(HERE, "bin", name), ...(env.PATH ?? "").split(delimiter).filter(Boolean).map((dir) => join(dir, name))];
	for (const place of places) {
		try {
			accessSync(place, constants.X_OK);
			return place;
		} catch {
			// the next one
		}
	}
	const looked = env.SHEPHERD_PI ? `SHEPHERD_PI=${env.SHEPHERD_PI}` : `${join(HERE, "bin")}, PATH`;
	throw new Error(`shepherd: the program shepherd-pi was not found (looked in ${looked}). Install it with: ${INSTALL}`);
}

/** spawned is a host of our own. It is detached: pi's terminal may not take it along. */
function spawned(path: string): Line {
	const child: ChildProcess = spawn(path, [], { detached: true, stdio: ["pipe", "pipe", "pipe"] });
	const { stdin, stdout, stderr } = child;
	let said = "";
	stdin?.on("error", () => {}); // "exit" follows
	stdout?.on("error", () => {});
	stderr?.on("error", () => {});
	stderr?.on("data", (chunk) => {
		said = (said + chunk).slice(-1000);
	});
	return {
		listen(line, ended) {
			const why = (how: string) => (said.trim() ? `${how}; ${said.trim().split("\n").at(-1)}` : how);
			child.on("error", (e) => ended(e.message));
			child.on("close", (code, signal) => ended(why(signal ?? `exit status ${code}`)));
			if (stdout) readLines(stdout, line);
		},
		write(message) {
			stdin?.write(`${JSON.stringify(message)}\n`);
		},
		ref(on) {
			for (const handle of [child, stdin, stdout, stderr] as any[]) on ? handle?.ref?.() : handle?.unref?.();
		},
		end(kill) {
			stdin?.end();
			if (kill && child.pid) killGroup(child.pid);
		},
	};
}

function killGroup(pid: number): void {
	try {
		process.kill(-pid, "SIGKILL");
	} catch {
		// it has ended
	}
}

/** dialled is a host that runs already. */
function dialled(path: string): Line {
	const socket = connect(path);
	let failure = "";
	socket.on("error", (e) => {
		failure = e.message;
	});
	return {
		listen(line, ended) {
			readLines(socket, line);
			socket.on("close", () => ended(failure || "it hung up"));
		},
		write(message) {
			socket.write(`${JSON.stringify(message)}\n`);
		},
		ref(on) {
			on ? socket.ref() : socket.unref();
		},
		end() {
			socket.end();
		},
	};
}

function readLines(from: NodeJS.ReadableStream, line: (text: string) => void): void {
	let parts: Buffer[] = [];
	let size = 0;
	from.on("data", (chunk: Buffer) => {
		for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10)) {
			parts.push(chunk.subarray(0, end));
			chunk = chunk.subarray(end + 1);
			if (size <= MAX_LINE) line(Buffer.concat(parts).toString("utf8"));
			parts = [];
			size = 0;
		}
		size += chunk.length;
		if (size <= MAX_LINE) parts.push(chunk);
		else parts = []; // no host of ours says so much
	});
}

/** lost runs when the host ends by itself. Its watches go on in a new one. */
function lost(b: Bridge, why: string): void {
	b.host = undefined;
	b.entered = undefined;
	b.replaced = true;
	b.herd = [];
	showHerd(b);
	if (b.quitting) return;
	const now = Date.now();
	b.restarts = b.restarts.filter((at) => now - at < MINUTE);
	if (b.restarts.length >= RESTARTS) {
		tell(b, `shepherd: its host ended again (${why}); it is started at the next tool call`, "error");
		return;
	}
	b.restarts.push(now);
	tell(b, `shepherd: its host ended (${why}) and is started again; what its agents were doing may be interrupted`, "warning");
	setTimeout(() => {
		if (!b.host && b.session && !b.quitting) enter(b, false).catch((e) => complain(b, e));
	}, 100 * b.restarts.length).unref();
}

function complain(b: Bridge, e: unknown): void {
	tell(b, (e as Error).message, "error");
}

function warn(b: Bridge, text: string): void {
	if (b.warned.has(text)) return;
	b.warned.add(text);
	tell(b, `shepherd: ${text}`, "warning");
}

function tell(b: Bridge, text: string, kind: "info" | "warning" | "error"): void {
	try {
		b.ctx?.ui.notify(text, kind);
	} catch {
		// between two sessions there is nobody to tell
	}
}

// ---- the command

const WORDS: [string, string][] = [
	["herd", "what the agents are doing"],
	["agents", "which agents can be started"],
	["start", "start one by hand: /shepherd start NAME LABEL"],
	["notes", "the notes of this session"],
	["settings", "where agents live, versions, paths"],
];

function command(b: Bridge): object {
	return {
		description: "Agents: herd, agents, start, notes, settings",
		getArgumentCompletions: (prefix: string) =>
			WORDS.filter(([word]) => word.startsWith(prefix)).map(([value, description]) => ({ value, label: value, description })),
		handler: async (args: string, ctx: any) => {
			try {
				await obey(b, args.trim(), ctx);
			} catch (e) {
				ctx.ui.notify((e as Error).message, "error");
			}
		},
	};
}

async function obey(b: Bridge, args: string, ctx: any): Promise<void> {
	let [word, name, ...label] = args.split(/\s+/);
	if (!word) {
		if (ctx.mode !== "tui") word = "herd";
		else {
			const choice = await ctx.ui.select("shepherd", WORDS.map(([w, what]) => `${w.padEnd(9)} ${what}`));
			if (!choice) return;
			word = String(choice).split(" ")[0];
		}
	}
	if (word === "start" && !name && ctx.mode === "tui") {
		[name = "", ...label] = String((await ctx.ui.input("Start which agent, and what for?", "scout the retry policy")) ?? "").split(/\s+/);
		if (!name) return;
	}
	ctx.ui.notify(await reply(b, word, name ?? "", label.join(" ")), "info");
}

async function reply(b: Bridge, word: string, name: string, label: string): Promise<string> {
	const by = `by-hand-${Date.now()}`;
	switch (word) {
		case "herd": {
			const list: any[] = b.host ? ((await ask(b, "shepherd_herd", by, {})).details.return ?? []) : [];
			return list.map((c) => `${titleOf(c)} ${c.state} ${c.for}`).join("\n") || "no agents are running";
		}
		case "agents": {
			const r = await ask(b, "shepherd_agents", by, {});
			const list: any[] = r.details.return ?? [];
			return list.length > 0 ? list.map((a) => `${a.agent}: ${a.description} (${a.source})`).join("\n") : firstLine(r.content[0].text);
		}
		case "start": {
			if (!name) throw new Error("which agent? /shepherd start NAME LABEL");
			const r = await ask(b, "shepherd_start", by, { agent: name, label });
			if (r.isError) throw new Error(firstLine(r.content[0].text));
			return `${firstLine(r.content[0].text)}, ${r.details.agentId}`;
		}
		case "notes":
		case "settings":
			return (await (await ready(b)).call("show", { session: b.session?.id ?? "", what: word })).text;
	}
	throw new Error(`/shepherd ${word} is nothing; there is: ${WORDS.map(([w]) => w).join(", ")}`);
}

// ---- looks

const MARKS: Record<string, [mark: string, colour: string]> = {
	done: ["✔", "success"],
	idle: ["✔", "success"],
	working: ["●", "accent"],
	blocked: ["◆", "warning"],
	failed: ["✘", "error"],
	timeout: ["✘", "error"],
	gone: ["✘", "error"],
	cancelled: ["○", "muted"],
	interrupted: ["○", "muted"],
};
const LINES = 12; // of a text, when expanded
const ROWS = 5; // of the widget
const NAME = 14; // cells of a name

function markOf(state: string): [string, string] {
	return MARKS[state] ?? ["·", "muted"];
}

/** plain strips what a terminal would take for a command. */
export function plain(text: unknown): string {
	return String(text ?? "").replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, " ");
}

const WIDE: [number, number][] = [
	[0x1100, 0x115f],
	[0x2e80, 0xa4cf],
	[0xac00, 0xd7a3],
	[0xf900, 0xfaff],
	[0xfe30, 0xfe6f],
	[0xff00, 0xff60],
	[0xffe0, 0xffe6],
	[0x1f300, 0x1faff],
	[0x20000, 0x3fffd],
];

/** cells is the width of a text on a terminal. */
export function cells(text: string): number {
	let n = 0;
	for (const c of text) {
		const code = c.codePointAt(0) as number;
		if (/\p{M}|\u200b|\u200d|\ufe0f/u.test(c)) continue;
		n += WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
	}
	return n;
}

/** fit cuts a text to a width. */
export function fit(text: string, width: number): string {
	const clean = plain(text);
	if (cells(clean) <= width) return clean;
	let out = "";
	let n = 0;
	for (const c of clean) {
		n += cells(c);
		if (n > width - 1) break;
		out += c;
	}
	return width > 0 ? `${out}…` : "";
}

const pad = (text: string, width: number) => text + " ".repeat(Math.max(0, width - cells(text)));
const padLeft = (text: string, width: number) => " ".repeat(Math.max(0, width - cells(text))) + text;

/** age is a duration for people. */
export function age(seconds: number): string {
	const s = Math.max(0, Math.round(seconds));
	if (s < 60) return `${s}s`;
	if (s < 3600) return `${Math.floor(s / 60)}m${String(s % 60).padStart(2, "0")}s`;
	return `${Math.floor(s / 3600)}h${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}m`;
}

function ageOf(c: Child): number {
	return ((c.until ?? Date.now()) - c.since) / 1000;
}

const firstLine = (text: string) => text.split("\n")[0];

/** herdRows draws the widget. */
export function herdRows(herd: Child[], width: number, theme: any): string[] {
	const order = (c: Child) => (c.state === "blocked" ? 0 : c.state === "working" ? 1 : 2);
	const shown = [...herd].sort((x, y) => order(x) - order(y)).slice(0, ROWS);
	const names = Math.min(NAME, Math.max(...shown.map((c) => cells(plain(c.agent)))));
	const states = Math.max(...shown.map((c) => cells(c.state)));
	const rows = shown.map((c) => {
		const [mark, colour] = markOf(c.state);
		const right = `${pad(plain(c.state), states)} ${padLeft(age(ageOf(c)), 6)}`;
		const room = width - 3 - names - 2 - cells(right) - 2;
		if (room < 4) return fit(` ${mark} ${c.agent} ${c.state}`, width);
		const label = pad(fit(c.label, room), room);
		const loud = c.state === "blocked" ? "warning" : "dim";
		return ` ${theme.fg(colour, mark)} ${pad(fit(c.agent, names), names)}  ${theme.fg("dim", label)} ${theme.fg(loud, right)}`;
	});
	if (herd.length > ROWS) rows.push(theme.fg("dim", fit(`   … and ${herd.length - ROWS} more · /shepherd herd`, width)));
	return rows;
}

/** showHerd puts the herd below the editor. */
function showHerd(b: Bridge): void {
	try {
		if (!b.ctx?.hasUI) return;
		const place = { placement: "belowEditor" };
		const { herd } = b;
		if (herd.length === 0) b.ctx.ui.setWidget("shepherd", undefined, place);
		else if (b.ctx.mode !== "tui") b.ctx.ui.setWidget("shepherd", herd.map((c) => plain(`${titleOf(c)} ${c.state}`)), place);
		else b.ctx.ui.setWidget("shepherd", (tui: any, theme: any) => herdWidget(herd, tui, theme), place);
	} catch {
		// the handle is stale: the next session's start shows it
	}
}

function herdWidget(herd: Child[], tui: any, theme: any): Component {
	const running = herd.some((c) => c.until === undefined);
	const tick = running ? setInterval(() => tui.requestRender?.(), 1000) : undefined;
	tick?.unref();
	return {
		render: (width) => herdRows(herd, width, theme),
		invalidate() {},
		dispose: () => clearInterval(tick),
	};
}

/** noticeRows draws a completion message. */
export function noticeRows(message: any, options: any, width: number, theme: any): string[] {
	const items: Item[] = message.details?.items ?? [];
	if (items.length === 0) return [fit(firstLine(String(message.content)), width)];
	if (!options.expanded) {
		const hint = width < 50 ? "" : ` · ${options.keyText?.("app.tools.expand") || "ctrl+o"}`;
		return [items.length === 1 ? itemRow(items[0], hint, width, theme) : itemsRow(items, hint, width, theme)];
	}
	const texts = textsOf(message.content);
	return items.flatMap((i, k) => [...(k > 0 ? [""] : []), itemRow(i, "", width, theme), ...itemText(i, texts.get(i.promptId) ?? "", width, theme)]);
}

function itemRow(i: Item, hint: string, width: number, theme: any): string {
	const [mark, colour] = markOf(i.status);
	const name = fit(i.agent, NAME);
	const tail = `${i.status}${i.seconds ? ` in ${age(i.seconds)}` : ""}${hint}`;
	const room = width - 4 - cells(name) - cells(tail) - 1;
	const label = i.label && room > 4 ? `${fit(i.label, room)} ` : "";
	if (3 + cells(name) + 1 + cells(label) + cells(tail) > width) return fit(` ${mark} ${name} ${i.status}`, width);
	return ` ${theme.fg(colour, mark)} ${theme.bold(name)} ${label}${theme.fg("dim", tail)}`;
}

function itemsRow(items: Item[], hint: string, width: number, theme: any): string {
	const head = fit(` ${items.length} agents finished`, width - cells(hint));
	let row = theme.bold(head);
	let used = cells(head) + cells(hint);
	for (const [k, i] of items.entries()) {
		const [mark, colour] = markOf(i.status);
		const part = ` ${mark} ${fit(i.agent, NAME)}`;
		const last = k === items.length - 1;
		if (used + cells(part) + (last ? 0 : 2) > width) {
			row += used + 2 <= width ? " …" : "";
			break;
		}
		used += cells(part);
		row += ` ${theme.fg(colour, mark)}${part.slice(2)}`;
	}
	return row + theme.fg("dim", hint);
}

function itemText(i: Item, text: string, width: number, theme: any): string[] {
	const dir = bridge().session?.dir;
	const path = dir && i.notePath?.startsWith(`${dir}/`) ? i.notePath.slice(dir.length + 1) : i.notePath;
	const both = [path, i.promptId].filter(Boolean);
	const oneRow = cells(both.join(" · ")) + 3 <= width;
	const rows = (oneRow ? [both.join(" · ")] : both).map((line) => theme.fg("dim", fit(`   ${line}`, width)));
	if (i.error) rows.push(theme.fg("error", fit(`   ${i.error}`, width)));
	const lines = text === "" ? [] : text.replace(/\n+$/, "").split("\n");
	for (const line of lines.slice(0, LINES)) rows.push(fit(`   ${line.replaceAll("\t", "    ")}`, width));
	if (lines.length > LINES) rows.push(theme.fg("dim", fit(`   … ${lines.length - LINES} more lines in the note`, width)));
	return rows;
}

const still = (render: (width: number) => string[]): Component => ({ render, invalidate() {} });

function drawNotice(message: any, options: any, theme: any): Component {
	return still((width) => noticeRows(message, options, width, theme));
}

function drawCall(b: Bridge, name: string, args: any, theme: any): Component {
	return still((width) => {
		const verb = name.replace("shepherd_", "");
		const about = callText(b, args);
		const row = fit(`shepherd ${verb} ${about}`.trimEnd(), width);
		const head = `shepherd ${verb}`;
		return [row.startsWith(head) ? theme.bold(head) + theme.fg("muted", row.slice(head.length)) : row];
	});
}

/** callText says in a few words what a call is about. */
function callText(b: Bridge, args: any): string {
	const ids = [args.id ?? []].flat().map((id: string) => nameOf(b, String(id)));
	return [args.agent, args.label, ids.join(", "), args.message && firstLine(String(args.message).trim())].filter(Boolean).join(" · ");
}

function nameOf(b: Bridge, id: string): string {
	return b.names.get(id) ?? id.replace(/^shepherd-(\w+)-.*-(\w{4})\w*$/, "$1 …$2");
}

function drawResult(result: any, options: any, theme: any): Component {
	return still((width) => {
		const text = (result.content ?? []).map((p: any) => p?.text ?? "").join("");
		if (options.isPartial) return text.split("\n").slice(0, ROWS).map((line: string) => theme.fg("dim", fit(line, width)));
		const bad = result.isError === true || (result.details?.returnCode ?? 0) !== 0;
		const rows = [theme.fg(bad ? "error" : "success", bad ? "✘ " : "✔ ") + fit(firstLine(text), width - 2)];
		if (options.expanded) for (const line of text.split("\n").slice(1)) rows.push(theme.fg("muted", fit(line, width)));
		return rows;
	});
}
