import type { KeyObject } from "node:crypto";
import type { Client } from "@connectrpc/connect";
import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import type { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import type { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";
import { optionsFor } from "../../plain/exchange.ts";
import { idOfStanding } from "./ids/derived-ids.ts";

/** Sessions of the suite, as those of MCP clients (mcp-1). */
export class McpSessions {
  readonly #sessions: Client<typeof SessionService>;
  readonly #stateKey: KeyObject;
  /** The id of a standing session, as it was when it was last looked for. */
  readonly #believed = new BoundedMap<string, string>(10_000);

  /** `stateKey`: that of `McpParts`. */
  constructor(sessions: Client<typeof SessionService>, stateKey: KeyObject) {
    this.#sessions = sessions;
    this.#stateKey = stateKey;
  }

  async open(agent: string, caller: Caller, sessionId = ""): Promise<Session> {
    const opened = await this.#sessions.createSession({ agent, sessionId }, optionsFor(caller));
    return opened.session ?? refuse("internal", "the router opened no session", { reason: "INTERNAL" });
  }

  /** A session of the caller that is not closed. Nobody is told of another's that it is there. */
  async require(sessionId: string, caller: Caller): Promise<Session> {
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(sessionId)) refuseSession(sessionId);
    const session = await this.#find(sessionId, caller);
    return typeof session === "object" && session.state !== SessionState.CLOSED ? session : refuseSession(sessionId);
  }

  /** Every gateway knows it from then on. */
  async setLogLevel(sessionId: string, level: LogLevel, caller: Caller): Promise<void> {
    await this.#sessions.setLogLevel({ sessionId, level }, optionsFor(caller));
  }

  /** Cancels what is in flight, of which nobody could be told. */
  async close(sessionId: string, caller: Caller): Promise<void> {
    await this.#sessions.closeSession({ sessionId, drainTimeout: {} }, optionsFor(caller));
  }

  /**
   * The session of a principal with an agent, for clients that name none: it is opened by whoever is first, and its id follows from
   * both. One that was closed, has gone on to another agent, or is somebody else's leaves its place to the next.
   */
  async standing(agent: string, caller: Caller): Promise<string> {
    for (let place = 0; place < MOST_PLACES; place += 1) {
      const id = this.#idOfStanding(agent, caller, place);
      this.#believed.set(holderOf(agent, caller), id);
      const session = await this.#find(id, caller);
      if (session === "foreign") continue;
      if (session === "none") return (await this.open(agent, caller, id)).id;
      if (session.agent === agent && session.state !== SessionState.CLOSED) return id;
    }
    return refuse("resource_exhausted", "too many sessions with this agent were closed lately: try again tomorrow", {
      reason: "SHARE_EXCEEDED",
    });
  }

  /** The standing session as it is believed to be. Nobody is asked, so it may not be there, or not be one any more. */
  believed(agent: string, caller: Caller): string {
    const holder = holderOf(agent, caller);
    const id = this.#believed.get(holder) ?? this.#idOfStanding(agent, caller, 0);
    this.#believed.set(holder, id);
    return id;
  }

  #idOfStanding(agent: string, caller: Caller, place: number): string {
    return idOfStanding(this.#stateKey, { principal: principalOf(caller), agent, place });
  }

  async #find(sessionId: string, caller: Caller): Promise<Session | "none" | "foreign"> {
    try {
      return (await this.#sessions.getSession({ sessionId }, optionsFor(caller))).session ?? "none";
    } catch (error) {
      const { reason } = failureFromConnectError(error);
      if (reason === "SESSION_NOT_FOUND") return "none";
      if (reason === "PRINCIPAL_NOT_OWNER") return "foreign";
      throw error;
    }
  }
}

/** A session that was closed keeps its id for a day at least. */
const MOST_PLACES = 100;

function holderOf(agent: string, caller: Caller): string {
  return JSON.stringify([principalOf(caller), agent]);
}

function refuseSession(sessionId: string): never {
  return refuse("not_found", `there is no session ${sessionId}: begin anew with initialize`, {
    reason: "SESSION_NOT_FOUND",
    metadata: { session_id: sessionId.slice(0, 64) },
  });
}
