import type { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Answers } from "../calls/questions.ts";

/** The session of a client of the older protocol, which says what it can only once. */
export interface ClientSession {
  readonly sessionId: string;
  readonly answers: Answers;
  /** Links to resources came with 2025-06-18. */
  readonly knowsLinks: boolean;
}

/** The same with what the suite keeps of it. */
export interface StandingSession extends ClientSession {
  /** The least level of log messages that it is told. */
  readonly logLevel: LogLevel;
}

/** As the header Mcp-Session-Id has it: since no gateway remembers what a client can, the client brings it. */
export function headerFromSession({ sessionId, answers: { forms, urls }, knowsLinks }: ClientSession): string {
  const can = `${forms ? "f" : ""}${urls ? "u" : ""}${knowsLinks ? "" : "o"}`; // `o`: older
  return can === "" ? sessionId : `${sessionId}.${can}`;
}

export function sessionFromHeader(header: string): ClientSession {
  const [, sessionId = header, can = ""] = /^(.*)\.(f?u?o?)$/.exec(header) ?? [];
  return { sessionId, answers: { forms: can.includes("f"), urls: can.includes("u") }, knowsLinks: !can.includes("o") };
}
