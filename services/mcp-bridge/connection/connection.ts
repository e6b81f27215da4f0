import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Logger } from "pino";
import {
  Health,
  type McpServer,
  type McpServerStatus,
  McpServerStatusSchema,
} from "#gen/toolbus/mcp/v1/mcp_servers_pb.ts";
import {
  type CallToolResponse,
  type OfferedTool,
  OfferedToolSchema,
  type SourceStatus,
  SourceStatusSchema,
} from "#gen/toolbus/tool/v1/provider_pb.ts";
import type { Tool, ToolLog, ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { type Backoff, createBackoff } from "#runtime/time/backoff.ts";
import { delay } from "#runtime/time/delay.ts";
import type { Holder } from "../key.ts";
import { type CallEvent, Calls } from "./calls.ts";
import { createChanges, orAborted } from "./changes.ts";
import { type Execution, execute } from "./execute.ts";
import { type HealthFinding, watchHealth } from "./health.ts";
import type { Link } from "./link.ts";
import type { ListedTools } from "./list-tools.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { createRefresh } from "./refresh.ts";

/*
 * One server, as one holder sees it.
 *
 *   connecting ──▶ ready ──link ended──▶ connecting, or waiting if it ended soon
 *       └──failed──▶ waiting ──backoff──▶ connecting          any ──dispose──▶ closed
 *
 * N1  At most one link at a time: what is left of one is closed before the next is opened.
 * N2  A listing waits for a fresh attempt only. One that follows a failure is reported as that failure, so that a broken
 *     server costs its startup timeout once, not at each listing.
 * N3  A call waits for one attempt to end, as long as a start may take; it never cuts the backoff short.
 * N4  A connection that nobody holds for the idle time is given up.
 */

export interface ConnectionOptions {
  server: McpServer;
  holder: Holder;
  instance: string;
  startupTimeoutMs: number;
  idleTimeoutMs: number;
  logger: Logger;
  /** Opens a link and tells its tools, within the time; has closed what it opened when it rejects. */
  open: (events: LinkEvents, timeoutMs: number, signal: AbortSignal) => OpeningLink;
  onIdle: () => void;
  onChange: () => void;
}

export interface LinkEvents {
  onToolsChanged: () => void;
  onLog: (log: ToolLog) => void;
}

export interface OpeningLink {
  ready: Promise<{ link: Link; listed: ListedTools }>;
  /** Resolves when nothing is left of an opening that failed. */
  closed: Promise<void>;
}

export interface ReadyPhase {
  kind: "ready";
  link: Link;
  tools: ReadonlyMap<string, Tool>;
  /** What the last check found; without checks, the state of the connection is the health. */
  finding?: HealthFinding;
}

type Phase =
  | ReadyPhase
  | { kind: "connecting"; lastFailure?: string }
  | { kind: "waiting"; reason: string; untilMs: number }
  | { kind: "closed" };

export interface ConnectionCall {
  callId: string;
  sessionId: string;
  tool: string;
  argumentsJson: string;
  deadlineMs: number;
  /** Ends this waiting; the call itself is cancelled when nobody waits for it. */
  signal: AbortSignal;
}

/** A link that lasted so long, or served a call, was sound: its end is no sign of a server that cannot start. */
const SOUND_MS = 5_000;

export class Connection implements AsyncDisposable {
  readonly changes = createChanges();
  readonly server: McpServer;
  readonly holder: Holder;
  readonly #options: ConnectionOptions;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #calls = new Calls();
  readonly #telling = new Set<(event: CallEvent) => void>();
  readonly #warned = new Set<string>();
  readonly #backoff: Backoff = createBackoff({ initialMs: 100, maxMs: 30_000 });
  readonly #startupTimeoutMs: number;
  readonly #running: Promise<void>;
  readonly #refresh;
  #phase: Phase = { kind: "connecting" };
  #changedAtMs = Date.now();
  #holds = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  #hasServed = false;
  #failedAttempts = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.server = options.server;
    this.holder = options.holder;
    this.#startupTimeoutMs = options.server.startupTimeoutMs || options.startupTimeoutMs;
    this.#logger = options.logger.child({ server: options.server.name, ...options.holder });
    this.#refresh = createRefresh({
      work: () => this.#readTools(),
      onError: (error) => this.#logger.warn(`the tools could not be read again: ${messageFromUnknown(error)}`),
    });
    this.#awaitIdle();
    this.#running = this.#run();
  }

  get isClosed(): boolean {
    return this.#phase.kind === "closed";
  }

  /** Keeps the connection open until disposed; undefined when it is closed already. */
  hold(): Disposable | undefined {
    if (this.#closing.signal.aborted) return undefined;
    this.#holds += 1;
    clearTimeout(this.#idleTimer);
    return {
      [Symbol.dispose]: () => {
        this.#holds -= 1;
        this.#awaitIdle();
      },
    };
  }

  /** Resolves when the offer says what there is to say: the server is ready, or known to have failed (N2). */
  async settled(signal: AbortSignal): Promise<void> {
    for (;;) {
      const changed = this.changes.next();
      const phase = this.#phase;
      if (phase.kind !== "connecting" || phase.lastFailure !== undefined) return;
      await orAborted(changed, signal);
    }
  }

  offer(): { tools: OfferedTool[]; status: SourceStatus } {
    const source = this.server.name;
    const phase = this.#phase;
    if (phase.kind !== "ready") {
      return { tools: [], status: create(SourceStatusSchema, { source, reason: reasonOf(phase) }) };
    }
    return {
      tools: [...phase.tools.values()].map((tool) => create(OfferedToolSchema, { source, tool })),
      status: create(SourceStatusSchema, { source, available: true }),
    };
  }

  status(): McpServerStatus {
    const phase = this.#phase;
    const isReady = phase.kind === "ready";
    const finding = isReady ? phase.finding : undefined;
    return create(McpServerStatusSchema, {
      name: this.server.name,
      ...this.holder,
      health: finding?.health ?? healthOf(phase),
      latencyMs: Math.round(finding?.latencyMs ?? 0),
      reason: isReady ? (finding?.reason ?? "") : reasonOf(phase),
      tools: isReady ? phase.tools.size : 0,
      protocolVersion: isReady ? phase.link.protocolVersion : "",
      instance: this.#options.instance,
      checkedAt: timestampFromMs(finding?.checkedAtMs ?? this.#changedAtMs),
    });
  }

  /** The call's progress and logs, then exactly one result. Throws when nothing was started, or the outcome is unknown. */
  call(call: ConnectionCall): AsyncGenerator<CallToolResponse> {
    const id = `${call.sessionId} ${call.callId}`;
    return this.#calls.join(id, (tell, signal) => this.#execute(call, tell, signal), call.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idleTimer);
    this.#refresh[Symbol.dispose]();
    this.#closing.abort(new Failure("unavailable", "the connection is closed", { reason: "SERVER_UNAVAILABLE" }));
    await this.#running;
    this.#enter({ kind: "closed" });
  }

  async #execute(call: ConnectionCall, tell: (event: CallEvent) => void, signal: AbortSignal): Promise<ToolResult> {
    const execution: Execution = {
      ...call,
      server: this.server,
      tell,
      abandoned: signal,
      whenReady: (limit) => this.#whenReady(limit),
      readTools: () => this.#readTools(),
      leave: (ready, outcome) => this.#leave(ready, outcome),
    };
    this.#telling.add(tell);
    try {
      const result = await execute(execution);
      this.#hasServed = true;
      return result;
    } finally {
      this.#telling.delete(tell);
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const failure = await this.#connectAndServe(signal);
      if (signal.aborted) return;
      if (failure === undefined) {
        this.#backoff.reset();
        this.#enter({ kind: "connecting" });
        continue;
      }
      const waitMs = this.#backoff.next();
      this.#enter({ kind: "waiting", reason: failure, untilMs: performance.now() + waitMs });
      await delay(waitMs, signal).catch(() => {}); // the loop looks at the signal itself
      this.#enter({ kind: "connecting", lastFailure: failure });
    }
  }

  /** Resolves when the link has ended and is closed (N1): with why it failed, or with undefined after a sound one. */
  async #connectAndServe(signal: AbortSignal): Promise<string | undefined> {
    const events: LinkEvents = { onToolsChanged: () => this.#refresh.request(), onLog: (log) => this.#takeLog(log) };
    const opening = this.#options.open(events, this.#startupTimeoutMs, signal);
    let opened: { link: Link; listed: ListedTools };
    try {
      opened = await opening.ready;
    } catch (error) {
      const reason = messageFromUnknown(error);
      this.#failedAttempts += 1;
      if (!signal.aborted) {
        this.#logger.warn(`unavailable: ${reason}`);
        this.#enter({ kind: "waiting", reason, untilMs: performance.now() });
      }
      await opening.closed;
      return reason;
    }
    return this.#serve(opened, signal);
  }

  async #serve(
    { link, listed }: { link: Link; listed: ListedTools },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const readyAtMs = performance.now();
    this.#hasServed = false;
    const over = new AbortController();
    if (!signal.aborted) {
      this.#enter({ kind: "ready", link, tools: this.#take(listed) });
      this.#logger.info({ tools: listed.tools.length, protocolVersion: link.protocolVersion }, "ready");
      this.#watchHealth(link, AbortSignal.any([over.signal, signal]));
    }
    const reason = await orAborted(link.ended, signal).catch(() => undefined); // closed by us: nobody asks why
    over.abort();
    const isLeftFresh = this.#phase.kind === "connecting";
    const isSound = isLeftFresh || this.#hasServed || performance.now() - readyAtMs > SOUND_MS;
    if (reason !== undefined) this.#logger.warn(`the link ended: ${reason}`);
    if (reason !== undefined && this.#phase.kind === "ready") {
      this.#enter(isSound ? { kind: "connecting" } : { kind: "waiting", reason, untilMs: performance.now() });
    }
    await link[Symbol.asyncDispose]();
    return isSound ? undefined : reason;
  }

  #watchHealth(link: Link, signal: AbortSignal): void {
    const { healthCheck } = this.server;
    if (healthCheck === undefined) return;
    void watchHealth({
      healthCheck,
      signal,
      check: (limit) => this.#check(link, limit),
      onFinding: (finding) => this.#found(link, finding),
    });
  }

  async #check(link: Link, signal: AbortSignal): Promise<void> {
    try {
      await link.check(signal);
    } catch (error) {
      const outcome = outcomeOf(error, link.hasSession);
      if (outcome.kind === "answered") return; // an error is an answer: the server is there
      const phase = this.#phase;
      const isOver = outcome.kind === "lost" || outcome.kind === "unreachable";
      if (isOver && phase.kind === "ready" && phase.link === link) this.#leave(phase, outcome);
      throw error;
    }
  }

  /** A link that has shown to be of no use is not used from this moment on. A lost session says nothing against the server. */
  #leave(ready: ReadyPhase, { kind, text }: Outcome): void {
    if (this.#phase === ready) {
      this.#enter(
        kind === "lost" ? { kind: "connecting" } : { kind: "waiting", reason: text, untilMs: performance.now() },
      );
    }
    ready.link.end(text);
  }

  /** A server that is red is connected to again, unless calls are in its hands: it may be busy with them. */
  #found(link: Link, finding: HealthFinding): void {
    const phase = this.#phase;
    if (phase.kind !== "ready" || phase.link !== link) return;
    const isNews = phase.finding?.health !== finding.health || phase.finding.reason !== finding.reason;
    phase.finding = finding;
    if (isNews) this.#changed();
    if (finding.health === Health.RED && this.#calls.running === 0) {
      this.#leave(phase, { kind: "unreachable", text: finding.reason });
    }
  }

  async #readTools(): Promise<void> {
    const phase = this.#phase;
    if (phase.kind !== "ready") return;
    const limit = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(this.#startupTimeoutMs)]);
    const listed = await phase.link.list(limit);
    if (this.#phase !== phase) return;
    phase.tools = this.#take(listed);
    this.#changed();
  }

  #take({ tools, warnings }: ListedTools): ReadonlyMap<string, Tool> {
    for (const warning of warnings) {
      if (!this.#warned.has(warning)) this.#logger.warn(warning);
      this.#warned.add(warning);
    }
    return new Map(tools.map((tool) => [tool.name, tool]));
  }

  /** MCP does not say which call a line belongs to: with one in flight it is known, with several nobody is told a wrong one. */
  #takeLog(log: ToolLog): void {
    const [only] = this.#telling;
    if (only && this.#telling.size === 1) only({ case: "log", value: log });
    else this.#logger.debug({ level: log.level }, `log of the server: ${log.message}`);
  }

  /** N3 */
  async #whenReady(signal: AbortSignal): Promise<ReadyPhase> {
    const current = this.#phase;
    if (current.kind === "ready") return current;
    const limitMs = performance.now() + this.#startupTimeoutMs;
    const failedBefore = this.#failedAttempts;
    const limit = AbortSignal.any([signal, this.#closing.signal, AbortSignal.timeout(this.#startupTimeoutMs)]);
    for (;;) {
      const changed = this.changes.next();
      const phase = this.#phase;
      if (phase.kind === "ready") return phase;
      const isTooFar = phase.kind === "waiting" && phase.untilMs > limitMs;
      if (phase.kind === "closed" || isTooFar || this.#failedAttempts > failedBefore)
        this.#refuseUnavailable(reasonOf(phase));
      try {
        await orAborted(changed, limit);
      } catch (error) {
        if (signal.aborted) throw error;
        this.#refuseUnavailable(reasonOf(this.#phase));
      }
    }
  }

  #refuseUnavailable(reason: string): never {
    return refuse("unavailable", `the MCP server ${this.server.name} is unavailable: ${reason}`, {
      reason: "SERVER_UNAVAILABLE",
      metadata: { server: this.server.name },
    });
  }

  #enter(phase: Phase): void {
    this.#phase = phase;
    this.#changed();
  }

  #changed(): void {
    this.#changedAtMs = Date.now();
    this.changes.tell();
    this.#options.onChange();
  }

  /** N4 */
  #awaitIdle(): void {
    clearTimeout(this.#idleTimer);
    if (this.#holds > 0 || this.#closing.signal.aborted) return;
    this.#idleTimer = setTimeout(this.#options.onIdle, this.#options.idleTimeoutMs).unref();
  }
}

function reasonOf(phase: Phase): string {
  if (phase.kind === "ready") return "";
  if (phase.kind === "closed") return "the connection is closed";
  if (phase.kind === "waiting") return phase.reason;
  return phase.lastFailure ?? "it is starting";
}

function healthOf(phase: Phase): Health {
  if (phase.kind === "ready") return Health.GREEN;
  return phase.kind === "connecting" && phase.lastFailure === undefined ? Health.UNSPECIFIED : Health.RED;
}
