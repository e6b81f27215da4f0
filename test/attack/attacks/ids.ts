// Ids and names that mean something to a subject, a path, a template or an object, wherever a request has a text.

import { createHash } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { nameOf, type Request, requestFor } from "../../system/access/attempts.ts";
import { answerOf } from "../../system/access/got.ts";
import { gatewayAt, SECRET } from "../../system/access/world.ts";
import { type Attack, tryAll } from "../attack.ts";
import { offered } from "./doors/methods.ts";

const oddIds = [
  "*",
  ">",
  "alices.>",
  "alices.*",
  "alic*",
  "*.keeper",
  "toolbus.rpc.>",
  "$KV.toolbus_memory.>",
  "$JS.API.>",
  "_INBOX.>",
  "alices.keeper",
  "alices:keeper",
  "alices/keeper",
  "../alices",
  "alices/..",
  "./alices",
  "..",
  ".",
  "/etc/passwd",
  "alices ",
  " alices",
  "ALICES",
  "alices\u0000",
  "alices\n",
  "alices\r\nx: y",
  "%61lices",
  "alices%00",
  "\u202ealices",
  "ａlices",
  "alices\u200b",
  "🙂",
  "__proto__",
  "constructor",
  "toString",
  ["$", "{secret:KEY}"].join(""),
  "{{input}}",
  "'; --",
  "x".repeat(64),
  "x".repeat(100_000),
  "",
];

/** The request once for each text in it, with another text there. */
function* variantsOf(value: unknown, text: string): Generator<unknown> {
  if (typeof value === "string") yield text;
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return;
  for (const [key, part] of Object.entries(value)) {
    if (key === "case" || key.startsWith("$")) continue;
    for (const other of variantsOf(part, text))
      yield Array.isArray(value) ? value.with(Number(key), other) : { ...value, [key]: other };
  }
}

/** Failures that no request may bring about. */
const isFault = (code: string) => ["internal", "unknown", "data_loss"].includes(code);

/** What mallory gets by a request that is not one, if it is more than a refusal. */
async function reachedBy(method: DescMethod, by: ReturnType<typeof gatewayAt>, request: Request, canary: string) {
  try {
    const text = await answerOf(method, by.transport, { request, silenceMs: 150 });
    const isOthers = [canary, SECRET, "keys/", "seed"].some((word) => text.includes(word));
    return isOthers
      ? `${nameOf(method)} with ${JSON.stringify(request).slice(0, 200)}: ${text.slice(0, 200)}`
      : undefined;
  } catch (error) {
    const { code, message } = failureFromConnectError(error);
    return isFault(code) ? `${nameOf(method)} with ${JSON.stringify(request).slice(0, 200)}: ${message}` : undefined;
  }
}

/** Sealed as they were before the seal had a key, and likewise. */
function* madeUpDeliveries(callId: string): Generator<string> {
  const stem = "watcher.made-up";
  const seal = createHash("sha256").update(`${stem} ${callId}`).digest("hex");
  yield* [`${stem}-${seal.slice(0, 16)}`, `${stem}-${seal}`, stem, seal, callId, `${callId}.1`];
}

export const ids: readonly Attack[] = [
  {
    name: "ids with wildcards, paths and templates, in every text of every method",
    requirement: "SEC-2",
    async play(ground, { isShort }) {
      const by = gatewayAt(ground.url, ground.keys.mallory);
      const odd = isShort ? oddIds.slice(0, 6) : oddIds;
      const tries = offered.flatMap((method) =>
        odd.flatMap((id) =>
          [...variantsOf(requestFor(method, ground), id)].map((request) => ({ method, request: request as Request })),
        ),
      );
      const outcome = await tryAll(tries, ({ method, request }) => reachedBy(method, by, request, ground.canary), 32);
      const { run } = await gatewayAt(ground.url, ground.keys.alice).client(RunService).getRun({ runId: ground.runId });
      const isParked = run?.state === RunState.REQUIRES_ACTION;
      return isParked ? outcome : { ...outcome, reached: [...outcome.reached, "alice's run is no longer as it was"] };
    },
  },
  {
    name: "deliveries that were never made, for another's call and approval",
    requirement: "SEC-2",
    play(ground) {
      const calls = gatewayAt(ground.url, ground.keys.mallory).client(ToolCallService);
      const outcome = { case: "resultJson", value: '"yes"' } as const;
      const tries = ["weigh", "approve"].flatMap((callId) => [
        { what: `sees ${callId}`, play: () => calls.getToolCall({ callId }) },
        { what: `answers ${callId}`, play: () => calls.submitToolResult({ callId, outcome }) },
        { what: `cancels ${callId}`, play: () => calls.cancelToolCall({ callId }) },
        ...[...madeUpDeliveries(callId)].map((deliveryId) => ({
          what: `takes ${callId} by ${deliveryId}`,
          play: () => calls.acknowledgeToolCall({ callId, deliveryId }),
        })),
      ]);
      return tryAll(tries, async ({ what, play }) =>
        play().then(
          () => `mallory ${what}`,
          () => undefined,
        ),
      );
    },
  },
];
