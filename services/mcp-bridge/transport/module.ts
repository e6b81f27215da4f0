import type { Transport } from "@modelcontextprotocol/client";
import type { Logger } from "pino";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { AddressGuard } from "#runtime/http/address-guard.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";

/** A way to reach servers. A third party's module exports one as `transport`; `TOOLBUS_MCP_TRANSPORTS` names the module. */
export interface TransportModule {
  /** As `transport` in a server's configuration. */
  readonly name: string;
  /** Schemes of the URLs that it is chosen for when a server names no transport. */
  readonly schemes: readonly string[];
  /** Secrets are resolved in the server. What was opened is closed by its own `close`, also when it was never used. */
  open(server: McpServer, context: TransportContext): Promise<OpenTransport>;
}

export interface TransportContext {
  /** For processes. */
  readonly environment: Readonly<Record<string, string>>;
  /** How processes are confined; undefined where the machine cannot. */
  readonly confinement: Confinement | undefined;
  readonly maxMessageBytes: number;
  readonly logger: Logger;
  /** Judges the addresses of a server that a run brought; absent for servers of operators. */
  readonly guard?: AddressGuard;
  /** The tokens of a server that asks for one; absent where its entry says itself who asks. */
  readonly authorization?: Authorization;
  /** Told of each line that the other side writes for people, redacted. */
  readonly onWords?: (line: string) => void;
  /** Takes the values of secrets out of what a server wrote, before anybody reads it. */
  readonly redact: (text: string) => string;
}

export interface OpenTransport {
  /** `transportFromChannel` makes one of a channel that only sends and receives. */
  readonly transport: Transport;
  /** What is known about the other side's end, for a message: how it exited, its last words. */
  describeEnd?(): string;
}

/** Whoever sends requests asks it for the token of each, and tells it of a refusal. */
export interface Authorization {
  /** Renewed when its time is nearly over; undefined when there is none. */
  token(): Promise<string | undefined>;
  /** Of a refusal for the lack of a right (401, or 403 with a scope). Resolves when there is another token to try; throws when there is none. */
  refused(response: Response, token: string | undefined, isAgain: boolean): Promise<void>;
}
