// SEC-2: every method, called by everybody.

import type { DescMethod } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Rule } from "#gen/toolbus/access/v1/access_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ruleOf } from "#runtime/rpc/access/rules.ts";
import { internalServices, processOf, publicServices } from "../../../services/processes.ts";
import { isEnding, nameOf, requestFor, requestForKey } from "./attempts.ts";
import { gotBy } from "./got.ts";
import { type Asker, accessPath, askers, pageFrom, type Row } from "./matrix.ts";
import { openWorld, type World } from "./world.ts";

const offered = publicServices.flatMap((service) => service.methods);
const internal = [...internalServices, ToolProviderService].flatMap((service) => service.methods);

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
  await expect(page).toMatchFileSnapshot(accessPath);
});

async function rowOf(method: DescMethod): Promise<Row> {
  const got = {} as Record<Asker, string>;
  const ask = async (asker: Asker) => {
    got[asker] = await attempt(method, asker);
  };
  if (method.methodKind === "unary") for (const asker of askers) await ask(asker);
  else await Promise.all(askers.map(ask)); // each waits for a stream that has nothing to say
  return { method, got };
}

async function attempt(method: DescMethod, asker: Asker): Promise<string> {
  const isInternal = internal.includes(method);
  const process = method.parent === ToolProviderService ? "spaces" : processOf(method.parent);
  if (isInternal && asker === "no key") return "not offered";
  const through = isInternal || asker === "service" ? world.onBus(process) : world.transports[asker];
  const caller = isInternal ? world.callers[asker] : undefined;
  const isPrivileged = asker === "operator" || asker === "service";
  const request = asker === "call key" ? requestForKey(method, world) : requestFor(method, world);
  return gotBy(method, through, { request, ...caller, isPrivileged });
}
