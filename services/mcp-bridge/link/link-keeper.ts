import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Logger } from "pino";
import { HealthState, type McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { type Backoff, createBackoff } from "#runtime/time/retry/backoff.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { loginNeededIn } from "../servers/login-needed.ts";
import type { StartTime } from "../servers/start-time.ts";
import { type About, NOTHING_KNOWN } from "./about.ts";
import { type HealthFinding, watchHealth } from "./health.ts";
import type { ListedTools } from "./listing/list-tools.ts";
import { refreshAfter } from "./listing/refresh.ts";
import type { Link, LinkEvents } from "./opening/link.ts";
import type { Outcome } from "./outcome/outcome.ts";
import { CurrentPhase } from "./phase/current-phase.ts";
import { type Phase, type ReadyPhase, reasonOf, refuseUnavailable } from "./phase/phase.ts";
import type { ResourceWatches } from "./resources/resource-watches.ts";

/*
 * Keeps a link to one server open, for as long as it is asked to.
 *
 *   connecting ──▶ ready ──link ended──▶ connecting, or waiting if it ended soon
 *       └──failed──▶ waiting ──backoff──▶ connecting          any ──dispose──▶ closed
 *
 * LINK1  At most one link at a time: what is left of one is closed before the next is opened.
 * LINK2  A listing waits for a fresh attempt only. One that follows a failure is reported as that failure, so that a broken
 *     server costs its startup timeout once, not at each listing.
 * LINK3  A call waits for one attempt to end, as long as a start may take; it never cuts the backoff short.
 * LINK4  A server that asks for a token is connected to again when there is one, and not before.
 */

export interface LinkKeeperOptions extends Pick<LinkEvents, "onLog" | "onElicit" | "onSample"> {
  server: McpServer;
  startTime: StartTime;
  logger: Logger;
  /** Of what a server says. */
  redact: (text: string) => string;
  open: OpenLink;
  onChange: () => void;
  watches: Pick<ResourceWatches, "linked" | "lost" | "updated">;
  /** Resolves when there is a token that was not there when the server last asked for one. */
  granted?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether calls are in the server's hands. */
  isBusy: () => boolean;
}

/** Opens a link and tells its tools, within the time. After a rejection, what it opened is gone when all of `closing` is. */
export type OpenLink = (
  events: OpeningEvents,
  time: StartTime,
  signal: AbortSignal,
  closing: Promise<unknown>[],
) => Promise<OpenedLink>;

export interface OpenedLink {
  link: Link;
  listed: ListedTools;
}

export interface OpeningEvents extends LinkEvents {
  /** What the server, or the program that fetches it, says beside the protocol. */
  onWords: (text: string) => void;
  /** Whether it is of use to nobody any more to begin, though what has begun goes on. */
  isUnclaimed?: () => boolean;
}

/** A link that lasted so long, or served a call, was sound: its end is no sign of a server that cannot start. */
const SOUND_MS = 5_000;
/** What was said once is not said again at each listing; a server may find new faults at each. */
const MOST_WARNED = 1_000;
/** Lines of standard error that are kept, and the characters of each. */
const MOST_LINES = 20;
const LONGEST_LINE = 500;
/** How long the other calls of a lost session may take to be told so. */
const ANSWERS_MS = 1_000;

export class LinkKeeper implements AsyncDisposable {
  /** The tools as they were listed last, whether or not the server is there at the moment. */
  listed: ReadonlyMap<string, Tool> = new Map();
  /** What the server said of itself last. */
  about: About = NOTHING_KNOWN;
  /** How often it was begun to connect to the server. */
  attemptCount = 0;
  /** What was said beside the protocol last, the oldest line first. */
  readonly lastLines: string[] = [];
  readonly #options: LinkKeeperOptions;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #warned = new BoundedMap<string, true>(MOST_WARNED);
  readonly #backoff: Backoff = createBackoff({ initialMs: 100, maxMs: 30_000 });
  readonly #current: CurrentPhase;
  readonly #listChanges = createChanges();
  readonly #running: Promise<void>;
  #hasServed = false;
  #awaitsGrant = false;
  /** The list changed while the first one of a link was on its way, which may be older. */
  #isListStale = false;
  /** Why it was not there when that was last told: attempts that fail alike are told once. */
  #toldReason: string | undefined;

  constructor(options: LinkKeeperOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#current = new CurrentPhase(options.onChange, options.startTime.installer);
    const refresh = () =>
      this.readTools().catch((error: unknown) =>
        this.#logger.warn(`the tools could not be read again: ${this.#textOf(error)}`),
      );
    refreshAfter(this.#listChanges, this.#closing.signal, refresh).catch(() => {}); // closed
    this.#running = this.#run();
  }

  get phase(): Phase {
    return this.#current.value;
  }

  /** Since when it stands so, and the ways to wait for it to be different, or for something to say about the server (LINK2). */
  get standing(): Pick<CurrentPhase, "changes" | "changedAtMs" | "settled"> {
    return this.#current;
  }

  /** The link has served a call. */
  noteServed(): void {
    this.#hasServed = true;
  }

  /** Throws `unavailable` when the server is not there in time (LINK3). */
  async whenReady(signal: AbortSignal): Promise<ReadyPhase> {
    const ready = await this.#current.ready(this.#options.startTime.ms, signal, this.#closing.signal);
    if (ready) return ready;
    const { name } = this.#options.server;
    if (this.phase.kind === "waiting" && this.phase.login) throw this.phase.login;
    return refuseUnavailable(name, reasonOf(this.phase));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Failure("unavailable", "the connection is closed", { reason: "MCP_SERVER_UNAVAILABLE" }));
    await this.#running;
    this.#current.enter({ kind: "closed" });
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const failure = await this.#connectAndServe(signal);
      if (signal.aborted) return;
      const awaitsLogin = failure !== undefined && this.phase.kind === "waiting" && this.phase.login !== undefined;
      if (awaitsLogin) await this.#options.granted?.(signal).catch(() => {}); // the loop looks at the signal itself
      if (awaitsLogin || failure === undefined) {
        this.#backoff.reset();
        this.#current.enter({ kind: "connecting" });
        continue;
      }
      const waitMs = this.#backoff.next();
      this.#current.enter({ kind: "waiting", reason: failure, untilMs: performance.now() + waitMs });
      await delay(waitMs, signal).catch(() => {}); // the loop looks at the signal itself
      this.#current.enter({ kind: "connecting", lastFailure: failure });
    }
  }

  /** Resolves when the link has ended and is closed (LINK1): with why it failed, or with undefined after a sound one. */
  async #connectAndServe(signal: AbortSignal): Promise<string | undefined> {
    const events: OpeningEvents = {
      onWords: (text) => this.#takeWords(this.#options.redact(text)),
      onToolsChanged: () => this.#listChanges.tell(),
      onResourceUpdated: (uri) => this.#options.watches.updated(uri),
      onSubscriptionsLost: (subscriptions) => this.#options.watches.lost(subscriptions),
      onLog: this.#options.onLog,
      onElicit: this.#options.onElicit,
      onSample: this.#options.onSample,
    };
    this.attemptCount += 1;
    this.#isListStale = false;
    const closing: Promise<unknown>[] = [];
    let opened: OpenedLink;
    try {
      opened = await this.#options.open(events, this.#options.startTime, signal, closing);
    } catch (error) {
      const reason = this.#textOf(error);
      this.#current.noteFailedAttempt();
      if (!signal.aborted) {
        if (reason !== this.#toldReason) this.#logger.warn(`unavailable: ${reason}`);
        this.#toldReason = reason;
        const login = loginNeededIn(error);
        const untilMs = login === undefined ? performance.now() : Number.POSITIVE_INFINITY;
        this.#current.enter({ kind: "waiting", reason, untilMs, ...(login && { login }) });
      }
      await Promise.all(closing);
      return reason;
    }
    return this.#serve(opened, signal);
  }

  async #serve({ link, listed }: OpenedLink, signal: AbortSignal): Promise<string | undefined> {
    const readyAtMs = performance.now();
    this.#hasServed = false;
    using ending = openEnding(signal);
    if (!signal.aborted) {
      this.about = { ...link.about, instructions: this.#options.redact(link.about.instructions) };
      this.#current.enter({ kind: "ready", link, tools: this.#take(listed) });
      if (this.#isListStale) this.#listChanges.tell();
      this.#toldReason = undefined;
      this.#logger.info({ tools: listed.tools.length, protocolVersion: link.protocolVersion }, "ready");
      this.#watchHealth(link, ending.signal);
      this.#options.watches.linked(link.subscriptions);
    }
    const end = unlessAborted(link.ended, signal).then(this.#options.redact);
    const reason = await end.catch(() => undefined); // closed by us: nobody asks why
    ending.end();
    this.#options.watches.linked(undefined);
    const isLeftFresh = this.phase.kind === "connecting";
    const isSound = isLeftFresh || this.#hasServed || performance.now() - readyAtMs > SOUND_MS;
    if (reason !== undefined) this.#logger.warn(`the link ended: ${reason}`);
    if (reason !== undefined && this.phase.kind === "ready")
      this.#current.enter(isSound ? { kind: "connecting" } : { kind: "waiting", reason, untilMs: performance.now() });
    if (isLeftFresh) {
      // a session that is lost for one call is so for those beside it, which the server says to each
      using limit = timeoutSignal(ANSWERS_MS);
      await link.quiet(limit);
    }
    await link[Symbol.asyncDispose]();
    return isSound ? undefined : reason;
  }

  #watchHealth(link: Link, signal: AbortSignal): void {
    const { healthCheck } = this.#options.server;
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
      const { kind, text } = link.outcomeOf(error);
      if (kind === "answered") return; // an error is an answer: the server is there
      const outcome: Outcome = { kind, text: this.#options.redact(text) };
      const phase = this.phase;
      const isOver = outcome.kind === "lost" || outcome.kind === "unreachable";
      if (isOver && phase.kind === "ready" && phase.link === link) this.leave(phase, outcome);
      throw error;
    }
  }

  /** A link that has shown to be of no use is not used from this moment on. A lost session says nothing against the server. */
  leave(ready: ReadyPhase, { kind, text }: Outcome): void {
    if (kind === "login") {
      this.#awaitGrant();
      return;
    }
    if (this.phase === ready) {
      this.#current.enter(
        kind === "lost" ? { kind: "connecting" } : { kind: "waiting", reason: text, untilMs: performance.now() },
      );
    }
    ready.link.end(text);
  }

  /** A server that wants a token for some of its tools is there all the same. */
  #awaitGrant(): void {
    this.#current.tell();
    if (this.#awaitsGrant) return;
    this.#awaitsGrant = true;
    this.#options.granted?.(this.#closing.signal).then(
      () => {
        this.#awaitsGrant = false;
        this.#current.tell();
      },
      () => {}, // closed meanwhile
    );
  }

  /** A server that is red is connected to again, unless calls are in its hands: it may be busy with them. */
  #found(link: Link, finding: HealthFinding): void {
    const phase = this.phase;
    if (phase.kind !== "ready" || phase.link !== link) return;
    const hasChanged = phase.finding?.health !== finding.health || phase.finding.reason !== finding.reason;
    phase.finding = finding;
    if (hasChanged) this.#current.tell();
    if (finding.health === HealthState.UNHEALTHY && !this.#options.isBusy())
      this.leave(phase, { kind: "unreachable", text: finding.reason });
  }

  /** Reads the list again, if there is a link. */
  async readTools(): Promise<void> {
    const phase = this.phase;
    this.#isListStale = phase.kind !== "ready";
    if (phase.kind !== "ready") return;
    using time = timeoutSignal(this.#options.startTime.ms);
    using ending = openEnding(this.#closing.signal, time);
    const listed = await phase.link.list(ending.signal);
    if (this.phase !== phase) return;
    phase.tools = this.#take(listed);
    this.#current.tell();
  }

  #takeWords(text: string): void {
    if (text.trim() === "") return;
    this.lastLines.push(text.slice(0, LONGEST_LINE));
    if (this.lastLines.length > MOST_LINES) this.lastLines.shift();
    this.#current.note(text);
  }

  #textOf(error: unknown): string {
    return this.#options.redact(messageFromUnknown(error));
  }

  #take({ tools, warnings, ttlMs }: ListedTools): ReadonlyMap<string, Tool> {
    for (const warning of warnings) {
      if (!this.#warned.has(warning)) this.#logger.warn(warning);
      this.#warned.set(warning, true);
    }
    const { toolsTtl: _, ...about } = this.about;
    this.about = { ...about, ...(ttlMs !== undefined && { toolsTtl: durationFromMs(ttlMs) }) };
    this.listed = new Map(tools.map((tool) => [tool.name, tool]));
    return this.listed;
  }
}
