// Runs the cases of the wire against this project's own server and client, by the runner in Python, on a bus of their own:
// `npx node examples/wire-conformance/main.ts [options of the runner …]`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBus } from "#runtime/bus/bus.ts";
import { pathOfSeed } from "#runtime/bus/credentials/directory.ts";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { openOurSubject } from "./subject/ours.ts";

const control = "conformance.ours";

await using stack = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), "wire-conformance-"));
stack.defer(() => rm(directory, { recursive: true, force: true }));
const server = stack.use(await openNatsServer({ directory }));
const { url: NATS_URL, login, credentials } = server;
const { connection } = stack.use(await openBus({ url: NATS_URL, login, name: "wire-conformance" }));
stack.use(await openOurSubject(connection, control));

const runner = fileURLToPath(new URL("python/runner.py", import.meta.url));
const args = ["run", runner, "--control", control, ...process.argv.slice(2)];
const env = { ...process.env, NATS_URL, NATS_NKEY: pathOfSeed(credentials, login.name) };
const child = spawn(await findUv(), args, { env, stdio: ["ignore", "inherit", "inherit"] });
const [exitCode] = (await once(child, "exit")) as [number | null];
process.exitCode = exitCode ?? 1;
