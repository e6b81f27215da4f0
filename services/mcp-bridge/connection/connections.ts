import { equals } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Ownership } from "#runtime/bus/ownership/ownership.ts";
import { createChanges, looksAt } from "#runtime/collections/changes.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { refuseShare } from "#runtime/failure/share.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import type { ServerAuthorization } from "../auth/authorization.ts";
import { type Holder, keyOf } from "../servers/key.ts";
import { isProcess } from "../servers/start-time.ts";
import type { Authorization } from "../transport/module.ts";
import { Calls } from "./calls.ts";
import { Connection, type ConnectionOptions, type ConnectionSettings } from "./connection.ts";
import type { Starts } from "./starts.ts";

/** How long a stop waits for the calls on a connection. */
const leavingMs = 10_000;
const RETRY_MS = 5_000;

/** Which instance has a connection. */
type Owners = Pick<Ownership<Connection, AskedConnection>, "acquire" | "release">;

export interface AskedConnection {
  server: McpServer;
  holder: Holder;
  /** Who opened its session; empty for one without. A session has one, and what is shared has none. */
  principal: string;
}

/** A connection that is about to be, and where its tokens come from. */
export interface OpenedConnection extends AskedConnection {
  authorization?: Authorization | undefined;
}

/** A connection of this instance, held open until the hold is disposed, or the instance that has it. */
export type Located = { kind: "here"; connection: Connection; hold: Disposable } | { kind: "there"; instance: string };

export interface ConnectionsOptions extends ConnectionSettings {
  /** Servers that run here as processes for the sessions of one principal. */
  maxProcesses: number;
  openerOf: (asked: OpenedConnection) => ConnectionOptions["open"];
  /** Where the tokens of a connection come from; undefined for a server that takes none. */
  authorizationOf?: (asked: AskedConnection) => ServerAuthorization | undefined;
  starts: Pick<Starts, "end">;
  onChange: (connection: Connection) => void;
  /** Of what fails with nobody waiting for it. */
  onError: (error: unknown) => void;
}

/** The connections that this instance has, and the way to those of others. */
export class Connections {
  /** A connection came, went, or is different. */
  readonly changes = createChanges();
  readonly #options: ConnectionsOptions;
  readonly #open = new Map<string, Connection>();
  readonly #released = new WeakSet<Connection>();
  readonly #gaveWay = new WeakSet<Connection>();
  readonly #calls = new Calls();
  #owners: Owners | undefined;
  #isLeaving = false;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Ownership opens through here, and is asked through here. */
  useOwners(owners: Owners): void {
    this.#owners = owners;
  }

  /** For ownership, after the key was won. */
  open(key: string, asked: AskedConnection): Connection {
    const { server } = asked;
    if (this.#isLeaving) refuseMoving(server); // who was asked while it was being closed does not take it again
    this.#requireRoom(asked);
    const authorization = this.#options.authorizationOf?.(asked);
    const connection: Connection = new Connection({
      ...this.#options,
      calls: this.#calls,
      ...asked,
      authorization,
      open: this.#options.openerOf({ ...asked, authorization }),
      onIdle: () => this.#owners?.release(key).catch(this.#options.onError),
      onChange: () => this.#changed(key, connection),
    });
    this.#open.set(key, connection);
    this.changes.tell();
    return connection;
  }

  /** SEC-6: of the processes of a principal's sessions, the one that is idle longest gives way; if all are in use, refuses. */
  #requireRoom(asked: AskedConnection): void {
    const { maxProcesses: limit, onError } = this.#options;
    const counts = ({ server, holder, principal }: AskedConnection) =>
      isProcess(server) && holder.sessionId !== "" && principal === asked.principal;
    if (!counts(asked)) return;
    const own = [...this.#open].filter(([, connection]) => counts(connection));
    if (own.length < limit) return;
    const sinceMs = ([, { idleSinceMs = Number.POSITIVE_INFINITY }]: [string, Connection]) => idleSinceMs;
    const [idlest] = own.toSorted((one, other) => sinceMs(one) - sinceMs(other));
    if (idlest === undefined || sinceMs(idlest) === Number.POSITIVE_INFINITY) refuseProcesses(asked.principal, limit);
    const [key, connection] = idlest;
    this.#gaveWay.add(connection);
    this.#open.delete(key); // it counts no more
    this.#owners?.release(key).catch(onError);
  }

  #changed(key: string, connection: Connection): void {
    this.#options.onChange(connection);
    if (this.#open.get(key)?.isClosed) this.#open.delete(key);
    this.changes.tell();
  }

  list(): Connection[] {
    return [...this.#open.values()];
  }

  async locate(asked: AskedConnection, signal: AbortSignal, hold?: { isWatch: boolean }): Promise<Located> {
    const { server, holder } = asked;
    const key = keyOf(server, holder);
    for (;;) {
      const found = await this.#ask(key, asked, signal);
      if (found.kind === "there") return found;
      if (this.#isLeaving) refuseMoving(server);
      const held = found.resource.hold(hold);
      if (held) return { kind: "here", connection: found.resource, hold: held };
    }
  }

  #ask(key: string, asked: AskedConnection, signal: AbortSignal) {
    if (!this.#owners) throw new TypeError("connections are asked for before there are owners");
    return this.#owners.acquire(key, asked, { signal });
  }

  /** Gives all connections to other instances, each when the calls on it have ended: nothing new begins on them. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    const giveAway = async ([key, connection]: [string, Connection]) => {
      await comesWithin(leavingMs, connection.whenUnused());
      await this.#owners?.release(key);
    };
    await Promise.all([...this.#open].map((each) => giveAway(each).catch(this.#options.onError)));
  }

  /** Closes what belongs to a session's agent alone, or to one run of it, and gives the number. */
  async releaseScope({ sessionId, agent, runId }: Holder): Promise<number> {
    const isOwn = ({ holder }: Connection) =>
      holder.sessionId === sessionId && holder.agent === agent && (runId === "" || holder.runId === runId);
    const own = [...this.#open].filter(([, connection]) => isOwn(connection));
    for (const [, connection] of own) this.#released.add(connection);
    await Promise.all(own.map(([key]) => this.#owners?.release(key)));
    return own.length;
  }

  /** Closes the connections of a server as it is described, whoever holds them. */
  async releaseServer(server: McpServer): Promise<void> {
    const own = [...this.#open].filter(([, connection]) => equals(McpServerSchema, connection.server, server));
    await Promise.all(own.map(([key]) => this.#owners?.release(key)));
    this.#options.starts.end(server);
  }

  /** After a connection that gave way to another one of its principal: resolves when somebody has had it opened here again. */
  async untilWanted(connection: Connection, signal: AbortSignal): Promise<void> {
    if (!this.#gaveWay.has(connection)) return;
    const key = keyOf(connection.server, connection.holder);
    for await (const _ of looksAt(this.changes, signal)) if (this.#open.has(key)) return;
  }

  /** Whether it was closed because its scope is over: then nobody opens it again on his own. */
  isReleased(connection: Connection): boolean {
    return this.#released.has(connection);
  }
}

function refuseMoving({ name }: McpServer): never {
  return refuse("unavailable", `${name} moves to another instance`, { reason: "OWNER_CHANGED" });
}

function refuseProcesses(principal: string, limit: number): never {
  const remedy = "end calls, let sessions share the server (`share`), or raise TOOLBUS_SHARE_PROCESSES";
  const share = "MCP servers as processes";
  return refuseShare(principal, { of: "this bridge", share, limit, retryMs: RETRY_MS, remedy });
}
