import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { type Attachment, type AttachOptions, attach, createRequests } from "./attachment.ts";
import { type Connection, randomName } from "./connection.ts";
import type { Run } from "./runs/run.ts";
import { type Input, type RunOptions, startRun } from "./runs/start-run.ts";

/** A conversation with an agent, which goes on from run to run. */
export interface Session extends AsyncDisposable {
  readonly id: string;
  readonly agent: string;
  run(input: Input, options?: RunOptions): Run;
  /** Offers the agent tools of this program, as `<callerId>_<name>`, until they are closed, in place of those that were offered before. */
  offer(callerId: string, tools: AttachOptions["tools"], options?: Pick<AttachOptions, "graceMs">): Promise<Attachment>;
  close(): Promise<void>;
}

export interface SessionOptions {
  /** 1 to 64 letters, digits, `_` and `-`; a name that nobody else has unless given. */
  readonly id?: string | undefined;
}

/** A session of that id which this key has opened before is taken up again. */
export async function openSession(
  connection: Connection,
  agent: string,
  options: SessionOptions = {},
): Promise<Session> {
  const { id = randomName() } = options;
  const sessions = connection.client(SessionService);
  await connection.repeat(() => sessions.createSession({ sessionId: id, agent }));
  const requests = createRequests();
  const close = async () => void (await connection.repeat(() => sessions.closeSession({ sessionId: id })));
  return {
    ...{ id, agent, close },
    run: (input, given = {}) => startRun(connection, { sessionId: id, input, ...given }),
    offer: (callerId, tools, given = {}) => attach(connection, { sessionId: id, callerId, tools, requests, ...given }),
    [Symbol.asyncDispose]: close,
  };
}
