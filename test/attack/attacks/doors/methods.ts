// Who comes without a key, with something like one, or says that it is somebody else.

import { readFile } from "node:fs/promises";
import type { DescMethod } from "@bufbuild/protobuf";
import { internalServices, publicServices } from "../../../../services/processes.ts";
import { nameOf, requestFor } from "../../../system/access/attempts.ts";
import { gotBy } from "../../../system/access/got.ts";
import { accessPath, rowsOfPage } from "../../../system/access/matrix.ts";
import { gatewayAt } from "../../../system/access/world.ts";
import { type Attack, type Ground, tryAll } from "../../attack.ts";

export const offered: readonly DescMethod[] = publicServices.flatMap((service) => service.methods);

const noKeys = ({ keys }: Ground): Record<string, Record<string, string>> => ({
  "no key": {},
  "a blank key": { "x-api-key": " " },
  "the name of a principal as its key": { "x-api-key": "alice" },
  "the name of everybody": { authorization: "Bearer local" },
  "the beginning of a key": { "x-api-key": keys.alice.slice(0, -1) },
  "a key and more": { "x-api-key": `${keys.alice},${keys.alice}` },
  "a key by another scheme": { authorization: `Basic ${Buffer.from(`alice:${keys.alice}`).toString("base64")}` },
  "a key and one that is none": { "x-api-key": keys.alice, authorization: "Bearer of-nobody-at-all" },
  "a claimed principal": { "toolbus-principal": "alice", "toolbus-roles": "operator" },
  "a claimed service": { "toolbus-service": "tool-router" },
});

/** What mallory says of itself beside its key. */
const claims: Record<string, Record<string, string>> = {
  nothing: {},
  "another's name": { "toolbus-principal": "alice" },
  "an operator's name and role": { "toolbus-principal": "olga", "toolbus-roles": "operator" },
  "a service's name": { "toolbus-service": "tool-router" },
  "an identity without signature": {
    "toolbus-identity": `eyJhbGciOiJub25lIn0.${base64({ sub: "alice", roles: ["operator"] })}.`,
  },
};

function base64(claims: object): string {
  return Buffer.from(JSON.stringify(claims)).toString("base64url");
}

/** The head of a call as a browser or curl sends it. */
async function post(
  url: string,
  { parent, name, methodKind }: DescMethod,
  headers: Record<string, string>,
): Promise<string> {
  const type = methodKind === "unary" ? "application/json" : "application/connect+json";
  const init = {
    method: "POST",
    headers: { "content-type": type, ...headers },
    body: methodKind === "unary" ? "{}" : "",
  };
  return (await fetch(`${url}/${parent.typeName}/${name}`, { ...init, signal: AbortSignal.timeout(10_000) })).text();
}

export const doors: readonly Attack[] = [
  {
    name: "every method without a key, or with something like one",
    requirement: "SEC-1",
    play(ground, { isShort }) {
      const ways = Object.entries(noKeys(ground)).slice(0, isShort ? 4 : undefined);
      const tries = offered.flatMap((method) => ways.map(([way, headers]) => ({ method, way, headers })));
      return tryAll(tries, async ({ method, way, headers }) => {
        const answer = await post(ground.url, method, headers);
        return answer.includes("unauthenticated") ? undefined : `${nameOf(method)} by ${way}: ${answer.slice(0, 200)}`;
      });
    },
  },
  {
    name: "every method for what is another's, with claims of who asks",
    requirement: "SEC-2",
    async play(ground, { isShort }) {
      const stated = rowsOfPage(await readFile(accessPath, "utf8"));
      const ways = Object.entries(claims).slice(0, isShort ? 2 : undefined);
      const tries = offered.flatMap((method) => ways.map(([way, headers]) => ({ method, way, headers })));
      const through = new Map(ways.map(([way, headers]) => [way, gatewayAt(ground.url, ground.keys.mallory, headers)]));
      return tryAll(tries, async ({ method, way }) => {
        const request = requestFor(method, ground);
        const wanted = stated.get(nameOf(method))?.stranger;
        const silenceMs = wanted === "yes" ? 200 : 20_000; // a refusal may take its time on a busy machine
        const got = await gotBy(method, through.get(way)!.transport, { request, silenceMs });
        return got === wanted ? undefined : `${nameOf(method)} with ${way}: ${got}, not ${wanted}`;
      });
    },
  },
  {
    name: "methods that only services may call, through the gateway",
    requirement: "SEC-2",
    play({ url, keys }) {
      const methods = internalServices.flatMap((service) => service.methods);
      const tries = methods.flatMap((method) => Object.values(keys).map((key) => ({ method, key })));
      return tryAll(tries, async ({ method, key }) => {
        const answer = await post(url, method, { "x-api-key": key, "toolbus-service": "tool-router" });
        return /unimplemented|not_found|no such/i.test(answer)
          ? undefined
          : `${nameOf(method)}: ${answer.slice(0, 200)}`;
      });
    },
  },
];
