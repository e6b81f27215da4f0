import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { retryRequest } from "../../retry-request.ts";
import type { Output } from "../history/history.ts";
import { functionTool } from "../plan/script.ts";
import type { World } from "../world.ts";

/** What the creator of a run was told. Its requests are repeated until they are answered. */
export interface RunClient {
  readonly toldIds: string[];
  readonly acknowledged: Output[];
  canceledAtMs: number | undefined;
  create(): Promise<string>;
  /** Answers calls of the function tool: each once, by two clients at the same time. */
  answer(runId: string, callIds: readonly string[]): Promise<void>;
  cancel(runId: string): Promise<void>;
  /** What was last asked for, asked for again. */
  repeat(): Promise<void>;
}

export interface ClientOptions {
  readonly token: string;
  readonly sessionId: string;
  readonly giveUpAtMs: number;
  readonly parallelToolCalls: boolean;
}

export function createRunClient(
  { runs }: World,
  { token, sessionId, giveUpAtMs, parallelToolCalls }: ClientOptions,
): RunClient {
  const answered = new Set<string>();
  let last: () => Promise<unknown> = async () => {};

  const persistently = <T>(call: () => Promise<T>): Promise<T> => {
    last = call;
    return retryRequest(call, giveUpAtMs);
  };
  const options = { timeoutMs: 5_000 };

  async function submit(runId: string, callId: string, outputJson: string): Promise<void> {
    const outcome = { case: "resultJson", value: outputJson } as const;
    const outputs = [{ callId, submissionId: outputJson, outcome }];
    const isStored = await persistently(() => accepts(runs.submitOutputs({ runId, outputs }, options)));
    if (isStored) client.acknowledged.push({ callId, outputJson });
  }

  const client: RunClient = {
    toldIds: [],
    acknowledged: [],
    canceledAtMs: undefined,
    async create() {
      const message = { role: Role.USER, content: textContent(`Do what is to be done for [${token}]`) };
      const input = [create(InputItemSchema, { item: { case: "message", value: message } })];
      const functionTools = [{ name: functionTool, inputSchemaJson: '{"type":"object"}' }];
      const request = { sessionId, input, idempotencyKey: token, options: { functionTools, parallelToolCalls } };
      const ask = async () => {
        const runId = (await runs.createRun(request, options)).run?.id ?? "";
        client.toldIds.push(runId);
        return runId;
      };
      return persistently(ask);
    },
    async answer(runId, callIds) {
      const open = callIds.filter((callId) => !answered.has(callId));
      for (const callId of open) answered.add(callId);
      for (const callId of open) {
        await Promise.all(["one", "the other"].map((who) => submit(runId, callId, JSON.stringify(`from ${who}`))));
      }
    },
    async cancel(runId) {
      const ask = async () => {
        const { run } = await runs.cancelRun({ runId, reason: "enough" }, options);
        if (run?.state !== RunState.CANCELED) throw new ConnectError("it is on its way", Code.Unavailable);
      };
      const isCanceled = await persistently(() => accepts(ask()));
      if (isCanceled) client.canceledAtMs ??= performance.now();
    },
    async repeat() {
      await last().catch(() => {}); // what counts is what it does: what it is told is told to the first request, too
    },
  };
  return client;
}

/** Whether it is stored: a call has one answer, and a run that has ended takes none. */
async function accepts(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    const { reason } = failureFromConnectError(error);
    if (reason === "CALL_ALREADY_RESOLVED" || reason === "RUN_ENDED") return false;
    throw error;
  }
}
