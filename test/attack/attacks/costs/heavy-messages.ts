// Messages that are made to cost what they may: a few bytes of them become an object.

import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { maxValues } from "#runtime/schema/json/json-size.ts";
import { gatewayAt } from "../../../system/access/world.ts";
import { type Attack, type Ground, tryAll } from "../../attack.ts";
import { callTool } from "../../suite/call-tool.ts";

const sessionId = "mallorys";
const CREATE_RUN = `/${RunService.typeName}/CreateRun`;

/** A request of mallory's by plain HTTP, with a credential beside her key that says nothing. */
async function post(
  { url, keys }: Ground,
  { path, type = "application/json", body }: { path: string; type?: string; body: string | Buffer },
  more: { authorization?: string; signal?: AbortSignal } = {},
): Promise<string> {
  const { authorization, signal = null } = more;
  const accept = "application/json, text/event-stream";
  const headers = { "content-type": type, accept, "x-api-key": keys.mallory, ...(authorization && { authorization }) };
  const answer = await fetch(url + path, { method: "POST", headers, body, signal });
  return answer.text();
}

/** `mode` of the options, a number, whose tag says that the function tools behind it are its bytes. */
function mistagged(values: number): Buffer {
  const tools = Buffer.alloc(2 * values, Buffer.from([0x1a, 0x00]));
  const mode = Buffer.from([0x22, ...varint(tools.length)]);
  return Buffer.concat([Buffer.from([0x22, ...varint(mode.length + tools.length)]), mode, tools]);
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

/** Says it on a WebSocket; gives the first that is told. */
async function say({ url, keys }: Ground, message: string): Promise<string> {
  const headers = { authorization: `Bearer ${keys.mallory}` };
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v1/responses`, { headers });
  try {
    await once(socket, "open");
    socket.send(message);
    const [told] = await once(socket, "message");
    return String(told);
  } finally {
    socket.terminate();
  }
}

export const heavyMessages: readonly Attack[] = [
  {
    name: "messages, arguments and bodies of millions of values",
    requirement: "SEC-5",
    play(ground, { isShort }) {
      const values = isShort ? 1_000_000 : 15_000_000;
      const tools = gatewayAt(ground.url, ground.keys.mallory);
      const objects = `[${"{},".repeat(values)}{}]`;
      const numbers = `[${"0,".repeat(3 * values)}0]`;
      const members = `{${Array.from({ length: values / 2 }, (_, at) => `"${at}":[]`).join()}}`;
      const call = (argumentsJson: string) =>
        callTool(tools, { sessionId, name: "note", argumentsJson }).catch(messageFromUnknown);
      const proto = { path: CREATE_RUN, type: "application/proto" };
      const tries = [
        () => post(ground, { ...proto, body: Buffer.alloc(2 * values, Buffer.from([0x1a, 0x00])) }), // `input`
        () => post(ground, { ...proto, body: mistagged(values) }),
        () => post(ground, { path: CREATE_RUN, body: `{"input":${objects}}` }),
        () => post(ground, { path: CREATE_RUN, body: `{"input":${numbers}}` }),
        () => post(ground, { path: "/mcp/spy", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":${objects}}` }),
        () => post(ground, { path: "/v1/responses", body: `{"model":"spy","input":${objects}}` }),
        () => post(ground, { path: "/v1/responses", body: `{"model":"spy","input":${numbers}0` }),
        () => post(ground, { path: "/api/runs/r/tool-results", body: `{"callId":"c","result":${objects}}` }),
        () => say(ground, `{"type":"response.create","model":"spy","input":${objects}}`),
        () => call(`{"text":${objects}}`),
        () => call(`{"text":${numbers}}`),
        () => call(members),
      ];
      const refused =
        /ha(?:s|ve) more than \d+|are not read|that of another type|is larger than|over the limit|ENHANCE_YOUR_CALM/;
      const isRefused = (answer: string) => refused.test(answer);
      return tryAll(tries, async (play) => {
        const answer = await play();
        return isRefused(answer) ? undefined : `it was read: ${answer.slice(0, 200)}`;
      });
    },
  },
  {
    name: "many messages at once, each as costly to read as one may be",
    requirement: "SEC-5",
    async play(ground, { isShort }) {
      const objects = `[${"{},".repeat(maxValues - 10)}{}]`;
      const tools = gatewayAt(ground.url, ground.keys.mallory);
      const argumentsJson = `{${Array.from({ length: maxValues - 10 }, (_, at) => `"${at}":1`).join()}}`;
      const run = { path: CREATE_RUN, body: `{"input":${objects}}` };
      const output = { output: { callId: "c", resultJson: `[${"{},".repeat(4_000)}{}]` } };
      const outputs = JSON.stringify({ agent: "spy", input: Array.from({ length: 1_000 }, () => output) });
      const kinds: ((at: number) => Promise<unknown>)[] = [
        (at) => post(ground, run, { authorization: `Basic ${at}` }),
        () => post(ground, { path: "/v1/responses", body: `{"model":"spy","input":${objects}}` }),
        () => callTool(tools, { sessionId, name: "note", argumentsJson }),
        () => post(ground, { path: "/api/runs/r/tool-results", body: `{"callId":"c","result":${objects}}` }),
        () => post(ground, run, { signal: AbortSignal.timeout(200) }),
        () => say(ground, `{"type":"response.create","model":"spy","input":${objects}}`),
        () => post(ground, { path: CREATE_RUN, body: outputs }),
      ];
      const tries = Array.from({ length: isShort ? 28 : 280 }, (_, at) => () => kinds[at % kinds.length]!(at));
      await Promise.allSettled(tries.map((play) => Promise.race([play(), delay(60_000)]))); // what it costs, another principal sees
      return { tries: tries.length, reached: [] };
    },
  },
];
