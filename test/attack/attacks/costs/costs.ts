// What a principal with a key makes services compute, keep and say.

import type { Client } from "@connectrpc/connect";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { objectOf, patternBombs, schemaBombs } from "#runtime/schema/json-schema/testing/bombs.ts";
import { until } from "#runtime/time/until.ts";
import { gatewayAt, input, options } from "../../../system/access/world.ts";
import { type Attack, type Ground, tryAll } from "../../attack.ts";
import { callTool } from "../../suite/call-tool.ts";

const sessionId = "mallorys";

/** Declares tools of mallory's own with these schemas, and calls each with its arguments. */
async function declareAndCall(
  ground: Ground,
  bombs: readonly { schemaJson: string; argumentsJson: string }[],
  times: number,
) {
  const by = gatewayAt(ground.url, ground.keys.mallory);
  const faults = await tryAll(
    bombs,
    async ({ schemaJson, argumentsJson }) => {
      const tool = { name: "bomb", inputSchemaJson: schemaJson };
      const declared = await by
        .client(CallerService)
        .declareTools({ sessionId, declaration: { callerId: "app", tools: [tool] } })
        .catch(messageFromUnknown);
      if (typeof declared === "string") return undefined; // refused: so much the better
      const call = () => callTool(by, { sessionId, name: "app_bomb", argumentsJson }).catch(messageFromUnknown);
      const said = await Promise.all(Array.from({ length: times }, call));
      const isCalled = said.some((text) => /cannot be checked|arguments|caller/.test(text));
      return isCalled ? undefined : `the bomb was not called: ${said[0]}`;
    },
    1,
  );
  return { ...faults, tries: bombs.length * times };
}

export const costs: readonly Attack[] = [
  {
    name: "schemas that take a compiler seconds and hundreds of megabytes",
    requirement: "SEC-5",
    play(ground, { isShort }) {
      const bombs = schemaBombs.map(([, schemaJson]) => ({ schemaJson, argumentsJson: "{}" }));
      return declareAndCall(ground, isShort ? bombs.slice(2, 4) : bombs, isShort ? 2 : 16);
    },
  },
  {
    name: "patterns that backtrack without end",
    requirement: "SEC-5",
    play(ground, { isShort }) {
      const bombs = patternBombs.map(([, property, value]) => ({
        schemaJson: objectOf({ text: property }),
        argumentsJson: JSON.stringify({ text: value }),
      }));
      return declareAndCall(ground, isShort ? bombs.slice(0, 2) : bombs, isShort ? 2 : 16);
    },
  },
  {
    name: "a thousand schemas in each of many declarations at once",
    requirement: "SEC-5",
    play({ url, keys }, { isShort, seed }) {
      const callers = gatewayAt(url, keys.mallory).client(CallerService);
      const schemaOf = (name: string) => JSON.stringify({ properties: { [name]: { type: "string", pattern: "^a$" } } });
      return tryAll([...Array(isShort ? 2 : 16).keys()], async (at) => {
        const names = Array.from({ length: 1_000 }, (_, index) => `t${seed}_${at}_${index}`);
        const tools = names.map((name) => ({ name, inputSchemaJson: schemaOf(name) }));
        await callers.declareTools({ sessionId, declaration: { callerId: "app", tools } });
        return undefined;
      });
    },
  },
  {
    name: "every place of a worker that others use, held and waited for",
    requirement: "SEC-6",
    async play({ url, keys }, { isShort, seed }) {
      const { client } = gatewayAt(url, keys.mallory);
      const own = { sessionId: `mallorys-${seed}`, agent: "calm" };
      await client(SessionService).createSession(own);
      const signal = AbortSignal.timeout(isShort ? 2_000 : 8_000);
      const call = { ...own, name: "@calm/rest", argumentsJson: '{"seconds":10}' };
      const calls = Array.from({ length: isShort ? 50 : 1_100 }, () =>
        Array.fromAsync(client(ToolService).callTool(call, { signal })),
      );
      await Promise.allSettled(calls);
      const close = () => client(SessionService).closeSession({ sessionId: own.sessionId });
      await until(() => close().catch(() => undefined)); // so many that are given up at once end their connection
      return { tries: calls.length, reached: [] };
    },
  },
  {
    name: "as many calls at once as a connection takes",
    requirement: "SEC-6",
    async play({ url, keys }, { isShort }) {
      const tools = gatewayAt(url, keys.mallory).client(ToolService);
      const count = isShort ? 500 : 6_000;
      const call = () => tools.listTools({ scope: { case: "session", value: { sessionId } } });
      await Promise.allSettled(Array.from({ length: count }, call));
      return { tries: count, reached: [] };
    },
  },
  {
    name: "more runs in flight than a principal's share",
    requirement: "SEC-6",
    async play({ url, keys, mostRuns }) {
      const runs = gatewayAt(url, keys.mallory).client(RunService);
      const created: string[] = [];
      const outcome = await tryAll(
        Array.from({ length: mostRuns + 20 }),
        async () => {
          const { run } = await runs.createRun({ agent: "keeper", input, options }).catch((error: unknown) => {
            const { reason, message } = failureFromConnectError(error);
            if (reason !== "SHARE_EXCEEDED") throw new Error(message);
            return { run: undefined };
          });
          if (run !== undefined) created.push(run.id);
          return undefined;
        },
        1,
      );
      const hers = gatewayAt(url, keys.alice).client(RunService);
      const other = await hers.createRun({ agent: "keeper", input, options });
      await Promise.all(created.map((runId) => runs.cancelRun({ runId })));
      await hers.cancelRun({ runId: other.run!.id });
      const excess = created.length - mostRuns;
      return { ...outcome, reached: excess > 0 ? [`${excess} runs more than the share were accepted`] : [] };
    },
  },
  {
    name: "texts that no reader can read, among what everybody reads",
    requirement: "SEC-5",
    async play({ url, keys }) {
      const odd = [
        '{"\\ud800":1}',
        '{"a":"\\udfff"}',
        '{"__proto__":{"a":1}}',
        `{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
        '{"a":1e999}',
        '{"a":1,"a":2}',
        "{",
        '"\\u0000"',
      ];
      const mallory = gatewayAt(url, keys.mallory);
      const outcome = await tryAll(odd, async (argumentsJson) => {
        await callTool(mallory, { sessionId, name: "note", argumentsJson }).catch(() => undefined);
        return undefined;
      });
      const reached: string[] = [];
      for (const [who, key] of Object.entries(keys)) {
        const audit = gatewayAt(url, key).client(AuditService);
        const pageSize = 1_000;
        const fault = await audit.listAuditEvents({ pageSize }).then(() => undefined, messageFromUnknown);
        if (fault !== undefined) reached.push(`${who} can no longer list the audit trail: ${fault}`);
        const ended = await watchBriefly(audit);
        if (ended !== undefined) reached.push(`${who} can no longer watch the audit trail: ${ended}`);
      }
      return { tries: outcome.tries, reached };
    },
  },
];

/** Why a watch of all that there is ended, if it did. */
async function watchBriefly(audit: Client<typeof AuditService>): Promise<string | undefined> {
  const leaving = AbortSignal.timeout(1_000);
  try {
    for await (const _ of audit.watchAuditEvents({ fromSequence: 0n }, { signal: leaving }));
    return "it ended";
  } catch (error) {
    return leaving.aborted ? undefined : messageFromUnknown(error);
  }
}
