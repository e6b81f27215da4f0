import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Logger } from "pino";
import { HealthState, LoginState, type McpConnection, type McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { InputRequiredSchema } from "#gen/toolbus/provider/v1/input_pb.ts";
import type { ExecuteToolResponse, OfferedTool } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { SourceStatus } from "#gen/toolbus/tool/v1/source_pb.ts";
import type { ToolLog } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type Changes, createChanges } from "#runtime/collections/changes.ts";
import type { Executed } from "#runtime/results/joined/joined-calls.ts";
import { MovingDeadline } from "#runtime/time/deadline/moving-deadline.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { ServerAuthorization } from "../auth/authorization.ts";
import { loginQuestion } from "../auth/login-question.ts";
import { LinkKeeper, type OpenLink } from "../link/link-keeper.ts";
import { isSettled, offerFromPhase, statusFromPhase } from "../link/phase/phase.ts";
import { ResourceWatches, type WatchEvent } from "../link/resources/resource-watches.ts";
import type { Holder } from "../servers/key.ts";
import { loginNeededIn } from "../servers/login-needed.ts";
import { startTimeOf } from "../servers/start-time.ts";
import type { CallChannel, Calls } from "./calls.ts";
import { type Call, execute } from "./execute.ts";
import { answerElicitation } from "./input/elicitation.ts";
import { stateFrom } from "./input/required.ts";
import { answerSampling } from "./input/sampling.ts";

/** What all connections of an instance have in common. */
export interface ConnectionSettings {
  instance: string;
  startupTimeoutMs: number;
  installTimeoutMs: number;
  /** The time of calls, where the operator has set it; the entry of a server stands above it. */
  toolTimeoutMs?: number | undefined;
  idleTimeoutMs: number;
  /** Where browsers reach the gateway. */
  publicUrl?: URL | undefined;
  logger: Logger;
  /** Strikes the values of secrets out of what servers say of themselves and of calls that failed. */
  redact: (text: string) => string;
}

export interface ConnectionOptions extends ConnectionSettings {
  server: McpServer;
  holder: Holder;
  /** Whose session has it; empty for what is shared. */
  principal: string;
  calls: Calls;
  authorization?: ServerAuthorization | undefined;
  open: OpenLink;
  /** Nobody has held the connection for the idle time. */
  onIdle: () => void;
  onChange: () => void;
}

export interface ConnectionCall extends Call {
  deadlineMs: number;
  /** Where progress begins the call's time anew: when it is over all the same. */
  latestMs?: number | undefined;
  /** Ends this waiting; the call itself is canceled when nobody waits for it. */
  signal: AbortSignal;
}

/** One server, as one holder sees it: its link, the calls on it, and who needs it open. */
export class Connection implements AsyncDisposable {
  readonly server: McpServer;
  readonly holder: Holder;
  readonly principal: string;
  readonly #id = randomUUID();
  readonly #options: ConnectionOptions;
  readonly #logger: Logger;
  readonly #keeper: LinkKeeper;
  readonly #redact: (text: string) => string;
  readonly #watches: ResourceWatches;
  /** Of the calls under way. */
  readonly #channels = new Set<CallChannel & Pick<Call, "accepted">>();
  #holds = 0;
  /** Of the holds, those that are more than watches. */
  #uses = 0;
  #isClosing = false;
  #idleSinceMs: number | undefined;
  readonly #unused = createChanges();
  #stopIdle = () => {};

  constructor(options: ConnectionOptions) {
    const { server, holder } = options;
    this.#options = options;
    this.server = server;
    this.holder = holder;
    this.principal = options.principal;
    this.#logger = options.logger.child({ server: server.name, ...holder });
    const { authorization } = options;
    this.#watches = new ResourceWatches(server.name);
    const redact = (text: string) => options.redact(authorization?.redact(text) ?? text);
    this.#redact = redact;
    this.#keeper = new LinkKeeper({
      ...options,
      redact,
      ...(authorization && { granted: (signal: AbortSignal) => authorization.granted(signal) }),
      startTime: startTimeOf(server, options),
      logger: this.#logger,
      onLog: (log) => this.#takeLog(log),
      onSample: (params, signal) => answerSampling(params, this.#channelOfRequest()?.ask, signal),
      onElicit: (params, signal) => answerElicitation(params, this.#channelOfRequest()?.ask, signal),
      isBusy: () => [...this.#channels].some(({ signal }) => !signal.aborted),
      watches: this.#watches,
    });
    this.#awaitIdle();
  }

  get changes(): Pick<Changes, "next"> {
    return this.#keeper.standing.changes;
  }

  get isClosed(): boolean {
    return this.#keeper.phase.kind === "closed";
  }

  /** Since when it is of use to nobody but those who watch it; undefined while it is used, or watched in its first start. */
  get idleSinceMs(): number | undefined {
    const isAwaited = this.#holds > 0 && !isSettled(this.#keeper.phase);
    return this.#uses > 0 || isAwaited ? undefined : this.#idleSinceMs;
  }

  /** Keeps the connection open until disposed; undefined when it is closed, or being closed. Who watches it lets it give way. */
  hold({ isWatch = false } = {}): Disposable | undefined {
    if (this.#isClosing) return undefined;
    const uses = isWatch ? 0 : 1;
    this.#holds += 1;
    this.#uses += uses;
    this.#idleSinceMs ??= performance.now();
    this.#stopIdle();
    return {
      [Symbol.dispose]: () => {
        this.#holds -= 1;
        this.#uses -= uses;
        if (uses > 0) this.#idleSinceMs = performance.now();
        if (this.#holds === 0) this.#unused.tell();
        this.#awaitIdle();
      },
    };
  }

  /** Resolves when nobody holds the connection. */
  async whenUnused(): Promise<void> {
    while (this.#holds > 0) await this.#unused.next().happened;
  }

  /** Resolves when the offer says what there is to say: the server is ready, or known to have failed. */
  settled(signal: AbortSignal): Promise<void> {
    return this.#keeper.standing.settled(signal);
  }

  offer(): { tools: OfferedTool[]; status: SourceStatus } {
    const { toolTimeoutMs } = this.#options;
    const timeout =
      this.server.callTimeout ?? (toolTimeoutMs === undefined ? undefined : durationFromMs(toolTimeoutMs));
    const { listed, about } = this.#keeper;
    return offerFromPhase(this.server.name, this.#keeper.phase, { listed, about, timeout });
  }

  status(): McpConnection {
    const { phase, standing, attemptCount, lastLines } = this.#keeper;
    const about = { ...this.#options, id: this.#id, changedAtMs: standing.changedAtMs };
    const status = { ...statusFromPhase(phase, about), attemptCount, lastLines: [...lastLines] };
    const { authorization } = this.#options;
    if (authorization === undefined) return status;
    const { login, need, hasToken } = authorization;
    const isDark = login === LoginState.NEEDED && !hasToken;
    return { ...status, login, reason: need || status.reason, ...(isDark && { health: HealthState.UNHEALTHY }) };
  }

  /** The call's progress and logs, then exactly one result. Throws when nothing was started, or the outcome is unknown. */
  call(call: ConnectionCall): AsyncGenerator<ExecuteToolResponse> {
    const { sessionId, callId, signal, accepted, responses } = call;
    const id = `${this.#id} ${sessionId} ${callId}`;
    const work = (channel: CallChannel) => this.#execute(call, channel);
    return this.#options.calls.join({ id, work, signal, accepted, responses });
  }

  /** Ends with the connection. Throws when the server is not there, or does not tell of the resource. */
  async *watchResource(uri: string, principal: string, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    await this.#keeper.whenReady(signal);
    yield* this.#watches.watch(uri, principal, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    this.#watches.close();
    this.#stopIdle();
    await this.#keeper[Symbol.asyncDispose]();
  }

  async #execute(call: ConnectionCall, given: CallChannel): Promise<Executed> {
    using time = new MovingDeadline(call);
    const channel: CallChannel & Pick<Call, "accepted"> = {
      accepted: call.accepted,
      signal: given.signal,
      tell(event) {
        if (event.case === "progress") time.extend();
        given.tell(event);
      },
      async ask(...asked) {
        using _ = time.pause();
        return await given.ask(...asked);
      },
    };
    this.#channels.add(channel);
    try {
      const redact = this.#redact;
      const { tell } = channel;
      const parts = { server: this.server, keeper: this.#keeper, tell, time, abandoned: given.signal, redact };
      const executed = await execute({ ...call, ...parts }).catch((error) => this.#askForLogin(call, error));
      this.#keeper.noteServed();
      return executed;
    } finally {
      this.#channels.delete(channel);
    }
  }

  /** Asks once for what a person has to do; nothing of the call was started. */
  #askForLogin({ callId, sessionId, principal, accepted, responses }: ConnectionCall, error: unknown): Executed {
    const needed = loginNeededIn(error);
    const { publicUrl } = this.#options;
    if (needed === undefined || responses !== undefined) throw error;
    const { kind, request } = loginQuestion(needed, publicUrl);
    if (!accepted.includes(kind)) throw error;
    const state = stateFrom({ call: [callId, sessionId, principal], isLogin: true });
    return { case: "inputRequired", value: create(InputRequiredSchema, { requests: [request], state }) };
  }

  /** MCP does not say which call a line belongs to: with one in flight it is known, with several nobody is told a wrong one. */
  #takeLog(log: ToolLog): void {
    const [only] = this.#channels;
    if (only && this.#channels.size === 1) only.tell({ case: "log", value: log });
    else this.#logger.debug({ level: log.level }, `log of the server: ${log.message}`);
  }

  /** Nor which call a request belongs to; but all calls of a session's own connection that ask somebody ask the same people. */
  #channelOfRequest(): CallChannel | undefined {
    const channels = [...this.#channels];
    if (channels.length > 1 && this.holder.sessionId === "") {
      this.#logger.warn("nobody was asked what the server asks: several calls are under way in sessions that share it");
      return undefined;
    }
    return channels.find(({ accepted }) => accepted.length > 0) ?? channels[0];
  }

  #awaitIdle(): void {
    this.#stopIdle();
    if (this.#holds > 0 || this.#isClosing) return;
    const { onIdle, idleTimeoutMs } = this.#options;
    this.#stopIdle = startTimer(idleTimeoutMs, onIdle, { isBackground: true });
  }
}
