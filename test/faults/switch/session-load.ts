import { randomUUID } from "node:crypto";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { delay } from "#runtime/time/delay.ts";
import type { Random } from "../random.ts";
import { referenceOf, type World } from "./world.ts";

/** What came of calls. Whatever is not answered has an error that says why; the two last must stay empty. */
export interface Tally {
  answered: number;
  readonly errors: Map<string, number>;
  /** The words of one error of each kind. */
  readonly examples: Map<string, string>;
  readonly lost: string[];
  readonly misled: string[];
}

export function createTally(): Tally {
  return { answered: 0, errors: new Map(), examples: new Map(), lost: [], misled: [] };
}

/** What was asked for when there was an error: a decided call is one that an agent made by its list of tools. */
type What = "call" | "decided call" | "listing" | "switch";

interface Whose {
  agent: string;
  sessionId: string;
  nonce: string;
}

/** No call may take longer: its tool takes 2 s at most, a switch 5 s and the start of its servers. */
const LOST_MS = 60_000;

/** One session with its calls and switches, which knows at each moment which agents it may have. */
export class SessionLoad {
  readonly #world: World;
  readonly #random: Random;
  readonly #tally: Tally;
  readonly sessionId: string;
  /** The agents that the session had; while a switch is under way the last one is the next. */
  readonly #history: string[];
  /** What was told of the last of them: a switch that is made only from there can be repeated until it is answered. */
  #contextRevision: number;
  #isSwitching = false;
  isDone = false;

  constructor(
    world: World,
    random: Random,
    { tally, session }: { tally: Tally; session: Pick<Session, "id" | "agent" | "contextRevision"> },
  ) {
    this.#world = world;
    this.#random = random;
    this.#tally = tally;
    this.sessionId = session.id;
    this.#history = [session.agent];
    this.#contextRevision = session.contextRevision;
  }

  get agent(): string {
    return this.#history.at(-1) ?? "";
  }

  /** Calls that no agent decided; now and then by a name of another agent's tool. */
  async callUnbound(): Promise<void> {
    while (!this.isDone) {
      const isForeign = this.#random.next() < 0.2;
      const name = isForeign ? referenceOf(this.#random.pick(this.#world.agents)) : "mine";
      await this.#call({ name, contextRevision: 0 });
      await delay(this.#random.next() * 20);
    }
  }

  /** So many calls, one after another, of the agent that is active. */
  async callOwn(count: number): Promise<void> {
    for (let made = 0; made < count; made++) await this.#call({ name: "mine", contextRevision: 0 });
  }

  /** Calls as a run makes them: decided by the agent whose tools were listed, several with one list. */
  async callDecided(): Promise<void> {
    while (!this.isDone) {
      try {
        const { agent, contextRevision, tools } = await this.#world.router.listTools({
          scope: { case: "session", value: { sessionId: this.sessionId } },
        });
        for (const { modelName } of tools.filter(({ reference }) => reference.startsWith("@"))) {
          for (let count = 0; count < 3; count++)
            await this.#call({ name: modelName, contextRevision, decidedBy: agent });
        }
      } catch (error) {
        this.#countError("listing", error);
      }
      await delay(this.#random.next() * 20);
    }
  }

  /** Switches to some other agent. While nobody tells the outcome it is asked again, on whichever router. */
  async switch(): Promise<"switched" | "not switched"> {
    const from = this.agent;
    const agent = this.#random.pick(this.#world.agents.filter((other) => other !== from));
    const isImpatient = this.#random.next() < 0.05;
    const { sessionId } = this;
    const expectedContextRevision = this.#contextRevision;
    const drainTimeout = durationFromMs(10);
    const request = { sessionId, agent, expectedContextRevision, ...(isImpatient && { drainTimeout }) };
    this.#history.push(agent);
    this.#isSwitching = true;
    try {
      this.#contextRevision = await this.#madeAtLast(request);
      return "switched";
    } catch (error) {
      this.#countError("switch", error);
      this.#history.push(from);
      return "not switched";
    } finally {
      this.#isSwitching = false;
    }
  }

  /** The revision that it gave. Rejects when it was refused, so that it will never be made. */
  async #madeAtLast(request: Parameters<World["sessions"]["switchAgent"]>[0]): Promise<number> {
    for (;;) {
      try {
        const { session } = await this.#world.sessions.switchAgent(request);
        return session?.contextRevision ?? 0;
      } catch (error) {
        if (!isUntold(error)) throw error;
        this.#countError("switch", error);
        await delay(100);
      }
    }
  }

  async #call(by: { name: string; contextRevision: number; decidedBy?: string }): Promise<void> {
    const { name, contextRevision, decidedBy } = by;
    const first = this.#history.length - (this.#isSwitching ? 2 : 1);
    const nonce = randomUUID();
    const delayMs = this.#random.next() < 0.02 ? 500 + this.#random.next() * 1_500 : this.#random.next() * 10;
    const argumentsJson = JSON.stringify({ nonce, delayMs, sessionId: this.sessionId });
    const what = decidedBy === undefined ? "call" : "decided call";
    const calling = this.#outcome(what, { sessionId: this.sessionId, name, contextRevision, argumentsJson });
    if (!(await comesWithin(LOST_MS, calling))) {
      this.#tally.lost.push(`${this.sessionId} ${name}: no answer within ${LOST_MS} ms`);
      return;
    }
    const whose = await calling;
    if (whose === undefined) return;
    this.#tally.answered += 1;
    const possible = decidedBy === undefined ? this.#history.slice(Math.max(0, first)) : [decidedBy];
    const isOwn = possible.includes(whose.agent) && whose.sessionId === this.sessionId && whose.nonce === nonce;
    if (!isOwn) this.#tally.misled.push(`${this.sessionId} ${name} of ${possible.join("|")}: ${JSON.stringify(whose)}`);
  }

  /** Undefined for an error, of whatever kind. */
  async #outcome(what: What, request: Parameters<World["router"]["callTool"]>[0]): Promise<Whose | undefined> {
    try {
      let result: { outputJson: string; isError: boolean } | undefined;
      for await (const { event } of this.#world.router.callTool(request)) {
        if (event.case === "result") result = event.value;
      }
      if (result === undefined) {
        this.#tally.lost.push(`${this.sessionId} ${request.name}: ended with neither result nor error`);
        return undefined;
      }
      const output = JSON.parse(result.outputJson) as Whose & { error?: string };
      if (!result.isError) return output;
      this.#count(what, kindOfText(output.error ?? ""), output.error ?? "");
    } catch (error) {
      this.#countError(what, error);
    }
    return undefined;
  }

  #countError(what: What, error: unknown): void {
    const { code, reason, message } = failureFromConnectError(ConnectError.from(error));
    this.#count(what, reason ?? code, message);
  }

  #count(what: What, how: string, text: string): void {
    const kind = `${what}: ${how}`;
    if (!this.#tally.examples.has(kind)) this.#tally.examples.set(kind, text);
    this.#tally.errors.set(kind, (this.#tally.errors.get(kind) ?? 0) + 1);
  }
}

/** Whether a request may have been carried out, or be so later. */
function isUntold(error: unknown): boolean {
  const { code } = failureFromConnectError(ConnectError.from(error));
  return code === "unavailable" || code === "deadline_exceeded";
}

/** The words of an error result without what differs from call to call. */
function kindOfText(text: string): string {
  if (text.includes("took too long")) return "canceled by a switch";
  if (/^There is no tool|is unavailable, if it exists/.test(text) || text.includes("may not call tool"))
    return "no tool of this agent";
  return text.replace(/"[^"]*"|s-\d+|\d+/g, "…").slice(0, 80);
}
