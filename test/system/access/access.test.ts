// SEC-2: every method, called by everybody.

import {
  create,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  toJsonString,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Rule } from "#gen/toolbus/access/v1/access_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { ruleOf } from "#runtime/rpc/access/rules.ts";
import { internalServices, processOf, publicServices } from "../../../services/processes.ts";
import { isEnding, nameOf, requestFor } from "./attempts.ts";
import { type Asker, askers, pageFrom, type Row } from "./matrix.ts";
import { openWorld, SECRET, type World } from "./world.ts";

const offered = publicServices.flatMap((service) => service.methods);
const internal = [...internalServices, ToolProviderService].flatMap((service) => service.methods);

/** Refusals that say who may; every other failure is the method's own, and so shows that the asker was let in. */
const refusals = new Set([
  "CREDENTIALS_INVALID",
  "PRINCIPAL_NOT_OWNER",
  "PRINCIPAL_NOT_OPERATOR",
  "CALLER_NOT_SERVICE",
  "CALL_NOT_TAKEN",
  "DELIVERY_NOT_FOUND",
]);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

test("SEC-2 every method has a rule", () => {
  expect([...offered, ...internal].filter((method) => ruleOf(method) === Rule.UNSPECIFIED).map(nameOf)).toEqual([]);
});

test("SEC-2 every method gives each asker what the page of access says, and nobody else's secrets", {
  timeout: 240_000,
}, async () => {
  const rows: Row[] = [];
  const play = async (methods: readonly DescMethod[]) => {
    for (const method of methods) rows.push(await rowOf(method));
  };
  const all = [...offered, ...internal];
  await play(all.filter((method) => !isEnding(method)));
  await play(all.filter(isEnding));
  const ofInternal = (row: Row) => internal.includes(row.method);
  const page = pageFrom(
    rows.filter((row) => !ofInternal(row)),
    rows.filter(ofInternal),
  );
  await expect(page).toMatchFileSnapshot("../../../docs/operations/access.md");
});

async function rowOf(method: DescMethod): Promise<Row> {
  const got = {} as Record<Asker, string>;
  for (const asker of askers) got[asker] = await attempt(method, asker);
  return { method, got };
}

async function attempt(method: DescMethod, asker: Asker): Promise<string> {
  const isInternal = internal.includes(method);
  const process = method.parent === ToolProviderService ? "spaces" : processOf(method.parent);
  const isWithoutKey = asker === "no key";
  if (isInternal && isWithoutKey) return "not offered";
  const through =
    asker === "service" ? world.asService(process) : isInternal ? world.onBus(process) : world.transports[asker];
  const headers = isInternal && asker !== "service" ? world.headersOf[asker] : {};
  try {
    const text = await answerOf(method, through, headers ?? {});
    const isPrivileged = asker === "operator" || asker === "service";
    if (!isPrivileged && text.includes(SECRET)) return "LEAKS";
    return /"redacted":true/.test(text) ? "part" : "yes";
  } catch (error) {
    const { reason, message } = failureFromConnectError(error);
    if (refusals.has(reason)) return reason;
    if (["INVALID_REQUEST", "REQUEST_MALFORMED", "INTERNAL"].includes(reason))
      throw new Error(`${nameOf(method)}: ${message}`);
    return "yes";
  }
}

/** The answer, or the first message of a stream; empty for one that has nothing to say for a while. */
async function answerOf(method: DescMethod, transport: Transport, headers: Record<string, string>): Promise<string> {
  const request = create(method.input, requestFor(method, world));
  if (method.methodKind === "unary") {
    const { message } = await transport.unary(method as DescMethodUnary, undefined, 20_000, headers, request);
    return toJsonString(method.output, message);
  }
  const leaving = new AbortController();
  const isSilent = Symbol("silent");
  const reading = (async () => {
    const asked = (async function* () {
      yield request;
    })();
    const streaming = method as DescMethodStreaming;
    const { message } = await transport.stream(streaming, leaving.signal, undefined, headers, asked);
    for await (const one of message) return toJsonString(method.output, one);
    return "";
  })();
  reading.catch(() => {}); // left below
  const silence = new Promise<typeof isSilent>((resolve) => setTimeout(resolve, 3_000, isSilent));
  const first = await Promise.race([reading, silence]);
  leaving.abort();
  return first === isSilent ? "" : first;
}
