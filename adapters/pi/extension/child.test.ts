import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";

import child, { expect, next } from "./child.ts";

const KEY = Symbol.for("shepherd.child/1");
const TOKEN = "secret";
const self = () => (globalThis as any)[KEY];
const cleanup: (() => unknown)[] = [];

afterEach(async () => {
	for (const undo of cleanup.splice(0).reverse()) await undo();
	delete (globalThis as any)[KEY];
});

/** A queue that a test can wait on. */
class Queue<T> {
	private items: T[] = [];
	private wake?: () => void;
	put(item: T) {
		this.items.push(item);
		this.wake?.();
	}
	async take(what = "nothing came"): Promise<T> {
		const limit = Date.now() + 5_000;
		while (this.items.length === 0) {
			const left = limit - Date.now();
			if (left <= 0) throw new Error(what);
			await new Promise<void>((done) => {
				const timer = setTimeout(done, left);
				this.wake = () => (clearTimeout(timer), done());
			});
		}
		return this.items.shift() as T;
	}
	get size() {
		return this.items.length;
	}
}

/** Lines listens on a socket and collects the JSON lines of every connection. */
class Lines {
	heard = new Queue<any>();
	connections = new Queue<Socket>();
	current?: Socket;
	all: Socket[] = [];
	server: Server;
	constructor(path: string, answer = "") {
		this.server = createServer((s) => {
			this.current = s;
			this.all.push(s);
			this.connections.put(s);
			let text = "";
			s.setEncoding("utf8");
			s.on("error", () => {});
			s.on("data", (d: string) => {
				text += d;
				for (let i; (i = text.indexOf("\n")) >= 0; text = text.slice(i + 1)) this.heard.put(JSON.parse(text.slice(0, i)));
				if (answer) s.end(answer);
			});
		}).listen(path);
		cleanup.push(() => this.close());
	}
	say(...lines: object[]) {
		this.current?.write(lines.map((l) => JSON.stringify(l) + "\n").join(""));
	}
	async close() {
		for (const s of this.all) s.destroy();
		if (this.server.listening) await new Promise((done) => this.server.close(done));
	}
}

/** What pi would be to the extension. */
class StubPi {
	handlers = new Map<string, ((e: any, ctx: any) => any)[]>();
	sent = new Queue<{ text: string; options: any }>();
	tools: any[] = [];
	others: { name: string }[] = [];
	idle = true;
	model: object | undefined = { id: "m" };
	stale = false;
	ctx = {
		isIdle: () => (this.live(), this.idle),
		sessionManager: { getSessionFile: () => "/s/one.jsonl" },
		get model() {
			return stub.model;
		},
	};
	constructor() {
		stub = this;
	}
	live() {
		if (this.stale) throw new Error("This extension ctx is stale after session replacement or reload.");
	}
	on(event: string, h: (e: any, ctx: any) => any) {
		this.handlers.set(event, [...(this.handlers.get(event) ?? []), h]);
	}
	sendUserMessage(text: string, options: any) {
		this.live();
		this.sent.put({ text, options });
	}
	registerTool(tool: any) {
		this.live();
		this.tools.push(tool);
	}
	getAllTools() {
		return [...this.others, ...this.tools];
	}
	emit(event: string, e: object = {}) {
		return (this.handlers.get(event) ?? []).map((h) => h({ type: event, ...e }, this.ctx));
	}
	/** One run: the events that pi would emit for it. */
	run(user: string, ...answers: object[]) {
		this.emit("agent_start");
		this.emit("message_end", { message: { role: "user", content: [{ type: "text", text: user }] } });
		for (const message of answers) this.emit("message_end", { message });
	}
}
let stub: StubPi;

const says = (text: string, stopReason = "stop") => ({ role: "assistant", content: [{ type: "text", text }], stopReason });
const prompt = (id: string, text = "do it") => ({ type: "prompt", prompt: id, marker: `[sheep:${id}]`, text: `[sheep:${id}]\n${text}` });

/** born starts the extension with a link, and Herdr's socket if wanted. */
function born(herdr = false) {
	const dir = mkdtempSync(join(tmpdir(), "shepherd-test-"));
	cleanup.push(() => rmSync(dir, { recursive: true, force: true }));
	Object.assign(process.env, { SHEPHERD_LINK: dir, SHEPHERD_LINK_TOKEN: TOKEN });
	if (herdr) Object.assign(process.env, { HERDR_ENV: "1", HERDR_SOCKET_PATH: join(dir, "herdr"), HERDR_PANE_ID: "w1:p2" });
	cleanup.push(() => ["HERDR_ENV", "HERDR_SOCKET_PATH", "HERDR_PANE_ID"].forEach((name) => delete process.env[name]));
	writeFileSync(join(dir, "role.md"), "You are the scout.");
	const host = new Lines(join(dir, "link"));
	const pi = new StubPi();
	child(pi);
	return { dir, host, pi };
}

async function hello(host: Lines) {
	const m = await host.heard.take("no hello");
	assert.equal(m.type, "hello");
	host.say({ type: "welcome" });
	return m;
}

async function started() {
	const b = born();
	b.pi.emit("session_start", { reason: "startup" });
	await hello(b.host);
	return b;
}

/** ask sends a prompt and returns the answer to it. */
async function ask(host: Lines, id: string, text?: string) {
	host.say(prompt(id, text));
	const m = await host.heard.take("no answer");
	assert.equal(m.type, "answer");
	assert.equal(m.prompt, id);
	return m;
}

test("without a link it is not there", () => {
	const pi = new StubPi();
	child(pi);
	assert.equal(pi.handlers.size, 0);
});

test("the hello says who it is and how things stand, and the secret stays here", async () => {
	const { host, pi } = born();
	assert.equal(host.connections.size, 0); // not before it can take a prompt
	pi.emit("session_start", { reason: "startup" });
	const m = await hello(host);
	assert.deepEqual(m, {
		type: "hello",
		protocol: 1,
		token: TOKEN,
		pid: process.pid,
		level: { busy: false, dialog: false, turns: 0, session: "/s/one.jsonl" },
	});
	assert.equal(process.env.SHEPHERD_LINK, undefined);
	assert.equal(process.env.SHEPHERD_LINK_TOKEN, undefined);
});

test("a prompt goes to pi as it is, and its ending is on disk before it is told", async () => {
	const { dir, host, pi } = await started();
	const text = "!ls\t/quit \r\n[paste #1 +3 lines] 🐑\u2028";
	assert.equal((await ask(host, "p1", text)).refused, undefined);
	assert.deepEqual(await pi.sent.take(), { text: `[sheep:p1]\n${text}`, options: { deliverAs: "followUp" } });

	pi.emit("agent_start");
	assert.deepEqual((await host.heard.take()).level, { busy: true, dialog: false, turns: 1, session: "/s/one.jsonl" });
	pi.emit("message_end", { message: { role: "user", content: `[sheep:p1]\n${text}` } });
	const m = await host.heard.take();
	assert.equal(m.type, "started");
	assert.equal(m.level.signal.kind, "started");
	pi.emit("message_end", { message: says("done") });
	assert.equal(existsSync(join(dir, "signal.json")), false);
	pi.emit("agent_settled", { aborted: false });
	const file = join(dir, "signal.json");
	const stored = JSON.parse(readFileSync(file, "utf8"));
	assert.equal(statSync(file).mode & 0o777, 0o600);
	const end = await host.heard.take();
	assert.equal(end.type, "settled");
	assert.deepEqual(end.level.signal, stored);
	assert.equal(stored.text, "done");
	assert.equal(stored.kind, "finished");

	pi.run("a human's"); // what was told is not told again
	assert.equal((await host.heard.take()).level.signal, undefined);
});

test("a text that imitates the protocol is a text", async () => {
	const { host, pi } = await started();
	await ask(host, "p1");
	const text = 'x\r\n{"type":"settled","level":{"signal":{"prompt":"p1","kind":"failed"}}}\n[sheep:p1]\u2028\ud800';
	pi.run("[sheep:p1]\ndo it", says(text));
	pi.emit("agent_settled");
	const { signal } = (await until(host, (m) => m.type === "settled")).level;
	assert.equal(signal.kind, "finished");
	assert.equal(signal.text, text);
	assert.equal(host.heard.size, 0);
});

test("a prompt is refused when it cannot begin now, and nothing changes", async () => {
	const { host, pi } = await started();
	pi.idle = false;
	assert.match((await ask(host, "p1")).refused, /^busy: /);
	pi.idle = true;
	pi.model = undefined;
	assert.match((await ask(host, "p2")).refused, /no model/);
	pi.model = {};
	pi.sendUserMessage = () => {
		throw new Error("out of order");
	};
	assert.match((await ask(host, "p3")).refused, /out of order/);
	assert.equal(pi.sent.size, 0);
	pi.run("[sheep:p3]\ndo it", says("no"));
	pi.emit("agent_settled");
	assert.equal((await host.heard.take()).level.signal, undefined);
	assert.equal((await host.heard.take()).level.signal, undefined);

	pi.emit("session_shutdown", { reason: "reload" });
	await host.heard.take();
	assert.match((await ask(host, "p4")).refused, /^busy: /);
});

test("lines from the host may come in pieces, together, or be nonsense", async () => {
	const { host, pi } = await started();
	const bytes = Buffer.from('nonsense\n{"type":"later"}\n\nnull\n' + JSON.stringify(prompt("p1", "🐑")) + "\n" + JSON.stringify(prompt("p2")) + "\n");
	for (const half of [bytes.subarray(0, bytes.indexOf("🐑") + 2), bytes.subarray(bytes.indexOf("🐑") + 2)]) {
		host.current?.write(half);
		await new Promise((done) => setTimeout(done, 20));
	}
	assert.equal((await pi.sent.take()).text, "[sheep:p1]\n🐑");
	assert.equal((await pi.sent.take()).text, "[sheep:p2]\ndo it");
});

test("a reload in mid-turn changes hands and loses nothing", async () => {
	const { host, pi: old } = await started();
	await ask(host, "p1");
	old.run("[sheep:p1]\ndo it");
	old.emit("session_shutdown", { reason: "reload" });
	old.stale = true;

	const pi = new StubPi();
	child(pi);
	pi.emit("session_start", { reason: "reload" });
	pi.emit("message_end", { message: says("done") });
	pi.emit("agent_settled");
	const last = await until(host, (m) => m.level.signal?.kind === "finished");
	assert.equal(last.level.signal.text, "done");
	assert.equal(last.level.turns, 1);
	await ask(host, "p2");
	assert.equal((await pi.sent.take()).text, "[sheep:p2]\ndo it");
	assert.equal(host.connections.size, 1); // one connection throughout
});

for (const begun of [false, true]) {
	test(`another session ends a prompt that has ${begun ? "" : "not "}begun`, async () => {
		const { dir, host, pi } = await started();
		await ask(host, "p1");
		if (begun) pi.run("[sheep:p1]\ndo it", says("so far", "toolUse"));
		pi.emit("session_shutdown", { reason: "new" });
		const m = await until(host, (m) => m.level.signal?.kind === "aborted");
		assert.equal(m.level.busy, false);
		assert.equal(m.level.signal.text, begun ? "so far" : "");
		assert.equal(JSON.parse(readFileSync(join(dir, "signal.json"), "utf8")).kind, "aborted");
	});
}

test("an ending of its own is not overwritten by the session's end", async () => {
	const { host, pi } = await started();
	await ask(host, "p1");
	pi.run("[sheep:p1]\ndo it", says("done"));
	pi.emit("agent_settled");
	const m = await until(host, (m) => m.level.signal?.kind === "finished");
	pi.emit("session_shutdown", { reason: "quit" });
	assert.equal((await host.heard.take()).level.signal, undefined); // as told: m
	assert.equal(m.level.signal.text, "done");
});

test("dialogs are told, and forgotten with their session", async () => {
	const { host, pi } = await started();
	pi.emit("ui_prompt_start", { kind: "confirm" });
	assert.equal((await until(host, (m) => m.type === "blocked")).level.dialog, true);
	pi.emit("ui_prompt_end", { kind: "confirm" });
	assert.equal((await until(host, (m) => m.type === "unblocked")).level.dialog, false);
	pi.emit("ui_prompt_start", { kind: "confirm" });
	await until(host, (m) => m.type === "blocked");
	pi.emit("session_shutdown", { reason: "reload" });
	assert.equal((await host.heard.take()).level.dialog, false);
});

test("a host that was away hears all of it", async () => {
	const { dir, host, pi } = await started();
	await ask(host, "p1");
	await host.close();
	pi.run("[sheep:p1]\ndo it", says("done"));
	pi.emit("agent_settled");
	while (self().retry === 50) await new Promise((done) => setTimeout(done, 10)); // it has tried in vain

	const again = new Lines(join(dir, "link"));
	const m = await hello(again);
	assert.equal(m.level.signal.text, "done");
	assert.equal(m.level.turns, 1);
	await ask(again, "p2");
	assert.equal(self().retry, 50); // next time it will be quick again
	assert.equal((await pi.sent.take()).text, "[sheep:p1]\ndo it");
	assert.equal((await pi.sent.take()).text, "[sheep:p2]\ndo it");
});

test("a link that was closed for good is left alone", async () => {
	const { dir, host } = await started();
	rmSync(dir, { recursive: true });
	const closed = once(host.current as Socket, "close");
	host.current?.destroy();
	await closed;
	await new Promise((done) => setTimeout(done, 20)); // the child sees it, too
	assert.equal(self().socket, undefined);
	assert.equal(self().retry, 50); // no attempt was made or planned
});

test("what breaks in here does not reach pi", async () => {
	const { dir, host, pi } = await started();
	await ask(host, "p1");
	rmSync(dir, { recursive: true }); // no signal file can be written
	pi.run("[sheep:p1]\ndo it", null as any, { role: "assistant", content: 7 });
	pi.emit("message_end", {});
	pi.emit("agent_settled");
	assert.equal((await until(host, (m) => m.level.signal?.kind === "finished")).level.signal.text, "");
	pi.stale = true;
	Object.defineProperty(pi.ctx, "sessionManager", { get: () => pi.live() });
	pi.emit("session_start", { reason: "new" });
});

test("nothing here makes pi wait", async () => {
	const { pi } = await started();
	const events = ["session_start", "before_agent_start", "agent_start", "message_end", "agent_settled", "ui_prompt_start", "ui_prompt_end", "session_shutdown"];
	for (const name of events) {
		for (const returned of pi.emit(name, { reason: "quit", systemPrompt: "" })) assert.equal(returned instanceof Promise, false);
	}
});

test("the agent is told who it is", async () => {
	const { pi } = await started();
	assert.deepEqual(pi.emit("before_agent_start", { systemPrompt: "Be good." }), [{ systemPrompt: "Be good.\n\nYou are the scout." }]);
});

test("shepherd_done gives the ending its text, error and code, and ends nothing", async () => {
	const { host, pi } = await started();
	const done = (params: object) => pi.tools[0].execute("c1", params);
	assert.match((await done({ text: "early" })).content[0].text, /Nothing was recorded/);
	await ask(host, "p1");
	pi.run("[sheep:p1]\ndo it");
	await done({ text: "first" });
	assert.match((await done({ text: "result", error: "why", returnCode: 7 })).content[0].text, /Recorded/);
	assert.equal(self().turn.signal.kind, "started");
	pi.emit("message_end", { message: says("bye") });
	pi.emit("agent_settled");
	const m = await until(host, (m) => m.level.signal?.kind === "failed");
	const { at, ...signal } = m.level.signal;
	assert.deepEqual(signal, { prompt: "p1", kind: "failed", text: "result", error: "why", code: 7 });

	await ask(host, "p2"); // which knows nothing of it
	pi.run("[sheep:p2]\ndo it", says("two"));
	pi.emit("message_end", { message: { role: "user", content: "a human's" } });
	assert.match((await done({ text: "for the human" })).content[0].text, /Nothing was recorded/);
	pi.emit("agent_settled");
	assert.equal((await until(host, (m) => m.level.signal?.kind === "finished")).level.signal.text, "two");
});

test("shepherd_done outlives a failing call after it, but not an abort", async () => {
	const { host, pi } = await started();
	for (const [id, last, kind] of [["p1", { role: "assistant", content: [], stopReason: "error", errorMessage: "500" }, "finished"], ["p2", says("", "aborted"), "aborted"]] as const) {
		await ask(host, id);
		pi.run(`[sheep:${id}]\ndo it`, says("", "toolUse"));
		await pi.tools[0].execute("c1", { text: "result" });
		pi.emit("message_end", { message: last });
		pi.emit("agent_settled", { aborted: kind === "aborted" });
		const m = await until(host, (m) => m.type === "settled" && m.level.signal?.prompt === id);
		assert.equal(m.level.signal.kind, kind);
		assert.equal(m.level.signal.text, "result");
	}
});

test("shepherd_done takes what models send for numbers and for nothing", async () => {
	const { host, pi } = await started();
	const cases: [unknown, number | undefined][] = [[3, 3], ["4", 4], [0, 0], [null, undefined], ["", undefined], [-1, undefined], [256, undefined], [1.5, undefined], ["x", undefined]];
	for (const [i, [sent, want]] of cases.entries()) {
		await ask(host, `n${i}`);
		pi.run(`[sheep:n${i}]\ndo it`, says("ok"));
		await pi.tools[0].execute("c1", { returnCode: sent, error: "null", text: "" });
		pi.emit("agent_settled");
		const { signal } = (await until(host, (m) => m.type === "settled")).level;
		assert.equal(signal.code, want, `${sent}`);
		assert.equal(signal.kind, "finished");
	}
});

test("shepherd_done is offered once, and not where the name is taken", async () => {
	const { pi } = await started();
	pi.emit("session_start", { reason: "startup" });
	assert.equal(pi.tools.length, 1);
	const other = new StubPi();
	other.others = [{ name: "shepherd_done" }];
	child(other);
	other.emit("session_start", { reason: "reload" });
	assert.equal(other.tools.length, 0);
});

test("Herdr is shown the newest state", async () => {
	const { dir, pi } = born(true);
	const herdr = new Lines(join(dir, "herdr"), '{"id":"x","result":{"type":"ok"}}\n');
	pi.emit("session_start", { reason: "startup" });
	pi.emit("agent_start");
	const first = await herdr.heard.take();
	assert.equal(first.method, "pane.report_agent");
	assert.equal(typeof first.id, "string");
	const { seq, ...params } = first.params;
	assert.deepEqual(params, { pane_id: "w1:p2", source: "shepherd:child", agent: "pi", state: "working" });
	pi.emit("ui_prompt_start"); // both while the first may be on its way: only what is true now counts
	pi.emit("ui_prompt_end");
	pi.emit("ui_prompt_start");
	let last = first;
	while (last.params.state !== "blocked") {
		const m = await herdr.heard.take();
		assert.ok(m.params.seq > last.params.seq);
		last = m;
	}
	pi.emit("ui_prompt_end");
	pi.emit("agent_settled");
	while (last.params.state !== "idle") last = await herdr.heard.take();
	assert.equal(herdr.heard.size, 0);
});

test("a Herdr that is not there or does not answer changes nothing", async () => {
	const { dir, host, pi } = born(true);
	pi.emit("session_start", { reason: "startup" });
	await hello(host);
	pi.emit("agent_start");
	assert.equal((await host.heard.take()).level.busy, true);
	const herdr = new Lines(join(dir, "herdr")); // hears, and says nothing
	pi.emit("agent_settled");
	assert.equal((await host.heard.take()).level.busy, false);
	assert.equal((await herdr.heard.take()).params.state, "idle");
	pi.emit("agent_start");
	assert.equal((await herdr.heard.take()).params.state, "working"); // it was not waited for for ever
});

test("a host that stops reading is let go of, and told everything when it reads again", async () => {
	const { host, pi } = await started();
	host.current?.pause();
	const text = "x".repeat(8 << 20);
	for (let n = 0; n < 10; n++) {
		self().turn = expect(self().turn, `p${n}`, `[sheep:p${n}]`);
		pi.run(`[sheep:p${n}]\ndo it`, says(text));
		pi.emit("agent_settled");
	}
	assert.equal(self().socket.destroyed, true);
	await host.connections.take(); // the first
	await host.connections.take();
	const m = await until(host, (m) => m.type === "hello");
	assert.equal(m.level.signal.prompt, "p9");
	assert.equal(m.level.turns, 10);
});

test("a text without end is cut, and says so", () => {
	let turn = expect({ busy: false, turns: 0, prompt: "", marker: "", ours: false }, "p", "[sheep:p]");
	const answer = says("x".repeat((8 << 20) + 1));
	for (const message of [{ role: "user", content: "[sheep:p]" }, answer]) turn = next(turn, { type: "message_end", message });
	turn = next(turn, { type: "agent_settled" });
	assert.match(turn.signal?.text?.slice(8 << 20) ?? "", /^\n\[cut here/);
});

test("a prompt that begins anew forgets what was recorded", async () => {
	const { host, pi } = await started();
	await ask(host, "p1");
	pi.run("[sheep:p1]\ndo it");
	await pi.tools[0].execute("c1", { text: "first" });
	pi.run("[sheep:p1]\ndo it", says("second"));
	pi.emit("agent_settled");
	assert.equal((await until(host, (m) => m.level.signal?.kind === "finished")).level.signal.text, "second");
});

/** until drops messages up to the first that is so. */
async function until(host: Lines, so: (m: any) => boolean) {
	for (;;) {
		const m = await host.heard.take("the message that was waited for never came");
		if (so(m)) return m;
	}
}
