// A client that knows nothing but an address: grpcurl learns from the gateway's reflection which services there are, and
// how to call them. Each command is printed as one would type it.
//
// Run it with `npx node examples/clients/grpcurl/client.ts`, the suite's address in TOOLBUS_URL and a key, if the gateway
// wants one, in TOOLBUS_API_KEY. Go fetches and builds grpcurl the first time.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const root = fileURLToPath(new URL("../../../", import.meta.url));
const programs = join(root, ".toolbus", "clients", "bin");
const { TOOLBUS_URL: url = "http://127.0.0.1:7480", TOOLBUS_API_KEY: key } = process.env;
const { host } = new URL(url);
const options = ["-plaintext", ...(key === undefined ? [] : ["-H", `authorization: Bearer ${key}`])];

await execute("go", ["install", "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4"], {
  env: { ...process.env, GOBIN: programs },
});
await learnTheContract();
await callATool("hello from grpcurl");
await watchARun("hello from grpcurl");
await lookForWhatIsInternal();

async function learnTheContract(): Promise<void> {
  const services = (await grpcurl(host, "list")).split("\n").filter((line) => line !== "");
  console.log(services.join("\n"));
  for (const noun of ["tool.v1.ToolService", "session.v1.SessionService", "run.v1.RunService"]) {
    assert.ok(services.includes(`toolbus.${noun}`), `toolbus.${noun} is not listed`);
  }
  assert.deepEqual(services.filter(isInternal), [], "what is internal is listed");
  const method = await grpcurl(host, "describe", "toolbus.run.v1.RunService.WatchRun");
  console.log(method.trimEnd());
  assert.match(method, /rpc WatchRun \( \.toolbus\.run\.v1\.WatchRunRequest \) returns \( stream /);
}

async function callATool(text: string): Promise<void> {
  const [created] = await call("toolbus.session.v1.SessionService/CreateSession", { agent: "demo" });
  const sessionId = created.session.id;
  const [listed] = await call("toolbus.tool.v1.ToolService/ListTools", { session: { sessionId } });
  const names: string[] = listed.tools.map((entry: { modelName: string }) => entry.modelName);
  console.log(names.join("\n"));
  assert.ok(names.includes("everything__echo"), "the tools of the agent are not listed");
  const request = { sessionId, name: "qr", argumentsJson: JSON.stringify({ text }) };
  const events = await call("toolbus.tool.v1.ToolService/CallTool", request);
  const { outputJson } = events.at(-1).result;
  console.log("qr answered:", JSON.parse(outputJson).text);
  assert.equal(JSON.parse(outputJson).text, text);
}

async function watchARun(text: string): Promise<void> {
  const input = [{ message: { role: "ROLE_USER", content: [{ text }] } }];
  const [created] = await call("toolbus.run.v1.RunService/CreateRun", { agent: "demo", input });
  const watched = { runId: created.run.id, fromSequence: "0" };
  const events = (await call("toolbus.run.v1.RunService/WatchRun", watched)).map((update) => update.event);
  for (const event of events) console.log(event.sequence ?? 0, Object.keys(event).at(-1));
  assert.ok("accepted" in events[0], "the first event is not that the run was accepted");
  const { ended } = events.at(-1);
  console.log(`the run ended: ${ended.state}: ${ended.outputText}`);
  assert.equal(ended.state, "RUN_STATE_COMPLETED");
  assert.ok(ended.outputText.includes(text), "the run does not repeat the text");
}

/** What the services keep to themselves, by the names that its protos give, can neither be described nor called. */
async function lookForWhatIsInternal(): Promise<void> {
  const { symbols, methods } = await readInternalNames();
  assert.ok(symbols.length > 5 && methods.length > 2, "the internal protos were not found");
  for (const symbol of symbols) {
    await assert.rejects(
      execute(join(programs, "grpcurl"), [...options, host, "describe", symbol]),
      /Symbol not found/,
    );
  }
  for (const method of methods) {
    const calling = execute(join(programs, "grpcurl"), [...options, "-d", "{}", host, method]);
    await assert.rejects(calling, /does not expose service|Symbol not found/);
  }
  const learned = join(programs, "learned.binpb");
  await grpcurl("-protoset-out", learned, host, "describe");
  const descriptors = await readFile(learned, "latin1");
  assert.ok(descriptors.includes("toolbus/run/v1/run_service.proto"), "the contract was not learned");
  assert.ok(!isInternal(descriptors), "a public file imports or names what is internal");
  console.log(`none of ${symbols.length} internal names is known, and none of ${methods.length} internal methods`);
}

async function readInternalNames(): Promise<{ symbols: string[]; methods: string[] }> {
  const folder = join(root, "proto", "toolbus", "internal");
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".proto"));
  const names = await Promise.all(files.map(async (name) => namesIn(await readFile(join(folder, name), "utf8"))));
  return { symbols: names.flatMap(({ symbols }) => symbols), methods: names.flatMap(({ methods }) => methods) };
}

function namesIn(proto: string): { symbols: string[]; methods: string[] } {
  const scope = /^package ([\w.]+);/m.exec(proto)?.[1] ?? "";
  const symbols = [...proto.matchAll(/^(?:message|enum|service) (\w+)/gm)].map(([, name]) => `${scope}.${name}`);
  const service = /^service (\w+)/m.exec(proto)?.[1];
  const methods = [...proto.matchAll(/^ {2}rpc (\w+)/gm)].map(([, name]) => `${scope}.${service}/${name}`);
  return { symbols, methods };
}

function isInternal(text: string): boolean {
  return /toolbus[./]internal/.test(text);
}

/** The messages that the method answers with, as JSON of whatever shape the gateway's reflection says. */
// biome-ignore lint/suspicious/noExplicitAny: nothing but reflection knows the types here
async function call(method: string, request: object): Promise<any[]> {
  const printed = await grpcurl("-d", JSON.stringify(request), host, method);
  return printed
    .split(/^(?=\{)/m)
    .filter((text) => text.trim() !== "")
    .map((text) => JSON.parse(text));
}

async function grpcurl(...args: string[]): Promise<string> {
  console.log(["$ grpcurl", "-plaintext", ...args.map((arg) => (/[{" ]/.test(arg) ? `'${arg}'` : arg))].join(" "));
  return (await execute(join(programs, "grpcurl"), [...options, ...args], { maxBuffer: 64 * 1024 * 1024 })).stdout;
}
