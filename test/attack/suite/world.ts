// A suite of processes to be attacked, in which alice has something of everything, mallory has tools that do what they like, and
// olga has configured it.

import { chown, cp, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { readLogin } from "#runtime/bus/credentials/directory.ts";
import { ADMIN } from "#runtime/bus/credentials/login.ts";
import { confinementFromReader } from "#runtime/config/confinement.ts";
import { readEnvironment } from "#runtime/config/environment.ts";
import { tryConfinement } from "#runtime/lifecycle/open-confinement.ts";
import { until } from "#runtime/time/until.ts";
import { issueProviderKey } from "../../../cli/suite/keys/provider-key.ts";
import { writeFileTree } from "../../../services/worker-pool/built-ins/testing/file-tree.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { startCommand } from "../../harness/commands/command.ts";
import { gatewayAt, keys, openWorld } from "../../system/access/world.ts";
import { HOSTILE_MCP_SERVER, HOSTILE_MODULE, HOSTILE_WORKER } from "../../system/tools/hostile-programs.ts";
import type { Ground } from "../attack.ts";
import { neighbourSession } from "../neighbour/calls.ts";
import { callTool } from "./call-tool.ts";
import { openIssuer } from "./issuer.ts";

export interface AttackedSuite extends AsyncDisposable {
  readonly ground: Ground;
  /** Services that have ended since the last time. */
  takeEnded(): string[];
}

const patience = { timeoutMs: 120_000 };
const CANARY = "only-alices";
const secretOfTools = "secret-of-the-suite-0123";
const MOST_RUNS = 64;
const modelKey = "key-of-a-model-012345678";

/** Starts the suite, a process each, with the files of everybody. */
export async function openAttackedSuite(): Promise<AttackedSuite> {
  await using stack = new AsyncDisposableStack();
  const files = await realpath(await mkdtemp(join(tmpdir(), "toolbus-attack-")));
  stack.defer(() => rm(files, { recursive: true, force: true }));
  await writeTools(files);
  const { inside } = await writeFileTree(files);
  const ended: string[] = [];
  const world = stack.use(
    await openWorld({
      isolate: true,
      strangers: true,
      onEvent: (event) => {
        if (event.kind === "ended" && !event.asked) ended.push(`${event.service} ended: ${event.how}`);
      },
      env: {
        ...environmentOf(files),
        TOOLBUS_GATEWAY_ALLOW: "127.0.0.2/31",
        TOOLBUS_SECRET_KEY: secretOfTools,
        TOOLBUS_SHARE_RUNS: String(MOST_RUNS),
        OPENAI_API_KEY: modelKey,
      },
    }),
  );
  const { suite } = world;
  await issueProviderKey(suite.credentials, "stranger");
  const grant = { TOOLBUS_DEFAULT_GRANT: "*" }; // the same at all gateways
  const onBus = { NATS_URL: suite.nats.url, TOOLBUS_BUS_CREDENTIALS: suite.credentials, ...grant };
  const issuer = await openIssuer(stack);
  const [openUrl, jwtUrl] = await Promise.all([
    openGateway(stack, { ...onBus, TOOLBUS_AUTH: "none" }),
    openGateway(stack, { ...onBus, ...issuer.env }),
  ]);
  await openSessions(suite.url);
  const admin = await readLogin(suite.credentials, ADMIN);
  const provider = await readLogin(suite.credentials, "provider.stranger");
  const confinement = await tryConfinement(confinementFromReader(readEnvironment(process.env)));
  const ground: Ground = {
    url: suite.url,
    openUrl,
    natsUrl: suite.nats.url,
    providerSeed: provider.seed,
    keys,
    jwt: { ...issuer.jwt, url: jwtUrl },
    mostRuns: MOST_RUNS,
    runId: world.runId,
    canary: CANARY,
    secrets: [...Object.values(keys), secretOfTools, modelKey, admin.seed],
    directories: { suite: suite.directory, files, inside, ofAnother: await fileOfAnother(files) },
    isConfined: confinement.kind === "confined",
  };
  const owned = stack.move();
  return { ground, takeEnded: () => ended.splice(0), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function environmentOf(files: string): NodeJS.ProcessEnv {
  return {
    TOOLBUS_AGENTS: join(files, "agents"),
    TOOLBUS_TOOLS: join(files, "tools"),
    TOOLBUS_SCRIPTS: join(files, "models"),
    TOOLBUS_HOSTED: join(files, "hosted"),
    TOOLBUS_WORKERS: join(files, "workers"),
  };
}

async function writeTools(files: string): Promise<void> {
  await cp(fileURLToPath(new URL("../../system/fixtures/keys", import.meta.url)), files, { recursive: true });
  const model = { provider: "scripted", model: "keeper.json" };
  const policy = { allowedPaths: [join(files, "inside")], timeout: 60_000 };
  await writeFiles(files, {
    "agents/calm.json": {
      name: "calm",
      model,
      workers: [{ name: "calm" }],
      mcp: { servers: [{ name: "everything", command: "mcp-server-everything", args: ["stdio"] }] },
      tools: { use: ["note", "@calm/*", "@everything/echo"] },
    },
    "agents/spy.json": {
      name: "spy",
      model,
      workers: [{ name: "spy" }],
      mcp: { servers: [{ name: "spies", command: process.execPath, args: [join(files, "spy.mjs")] }] },
      tools: { use: ["@spy/*", "@spies/*", "search_shell", "search_hosted", "fs_read", "fs_write", "note", "fetch"] },
    },
    "tools/search_shell.json": {
      name: "search_shell",
      kind: "builtin",
      builtinPolicy: { ...policy, name: "shell_exec", allowedCommands: ["sh"] },
    },
    "tools/search_hosted.json": { name: "search_hosted", executionType: "hosted" },
    "tools/fs_read.json": { name: "fs_read", kind: "builtin", builtinPolicy: policy },
    "tools/fs_write.json": { name: "fs_write", kind: "builtin", builtinPolicy: policy },
    "workers/spy.py": HOSTILE_WORKER,
    "workers/calm.py":
      '# /// script\n# dependencies = []\n# ///\nimport time\n\ndef add(a: int, b: int) -> int:\n    """Adds."""\n    return a + b\n\ndef rest(seconds: float):\n    """Rests."""\n    for _ in range(int(seconds * 20)):\n        time.sleep(0.05)\n',
    "hosted/search_hosted.mjs": HOSTILE_MODULE,
    "spy.mjs": HOSTILE_MCP_SERVER,
  });
}

/** One more than the suite's own. */
async function openGateway(stack: AsyncDisposableStack, env: NodeJS.ProcessEnv): Promise<string> {
  const gateway = stack.use(startCommand(["serve", "gateway"], { env: { ...env, TOOLBUS_HTTP_PORT: "0" } }));
  const url = () => /"url":"(http[^"]+)"/.exec(gateway.written.stdout)?.[1];
  return until(url, { ...patience, what: "another gateway" });
}

/** Root makes one; anybody else finds one. */
async function fileOfAnother(files: string): Promise<string> {
  if (process.getuid?.() !== 0) return "/etc/shadow";
  const path = join(files, "of-another");
  await writeFile(path, CANARY, { mode: 0o600 });
  await chown(path, 65_534, 65_534);
  return path;
}

/** What is alice's alone, and the sessions of the neighbour and of mallory. */
async function openSessions(url: string): Promise<void> {
  const [alice, mallory] = [gatewayAt(url, keys.alice), gatewayAt(url, keys.mallory)];
  const own = { kind: MemoryKind.MEMORY, key: "own", text: CANARY };
  await alice.client(MemoryService).setEntries({ sessionId: "alices", agent: "keeper", entries: [own] });
  await callTool(alice, { sessionId: "alices", name: "note", argumentsJson: JSON.stringify({ text: CANARY }) });
  await alice.client(SessionService).createSession({ agent: "calm", sessionId: neighbourSession });
  await mallory.client(SessionService).createSession({ agent: "spy", sessionId: "mallorys" });
  const works = (by: typeof alice, sessionId: string, name: string, argumentsJson: string) =>
    until(() => callTool(by, { sessionId, name, argumentsJson }).catch(() => undefined), { ...patience, what: name });
  await works(alice, neighbourSession, "@calm/add", '{"a":1,"b":2}');
  await works(alice, neighbourSession, "@everything/echo", '{"message":"hello"}');
  for (const name of ["@spy/search_worker", "@spies/search_mcp", "search_hosted"])
    await works(mallory, "mallorys", name, '{"script":"true"}');
}
