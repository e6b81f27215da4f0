import { fileURLToPath } from "node:url";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { issueProviderKey } from "../../cli/suite/keys/provider-key.ts";
import type { Suite } from "../../cli/suite/suite.ts";
import { freePort } from "../free-port.ts";

export type ProviderName = "python" | "go" | "typescript";

export interface Places {
  /** What TOOLBUS_PROVIDERS has to say of them. */
  readonly variable: string;
  readonly ports: Readonly<Record<"python" | "go", number>>;
}

/** Where the three will be: two at a URL, one on the bus. */
export async function findPlaces(): Promise<Places> {
  const ports = { python: await freePort(), go: await freePort() };
  const urls = [`python=grpc://127.0.0.1:${ports.python}`, `go=http://127.0.0.1:${ports.go}`];
  return { ports, variable: [...urls, "typescript=dice"].join(",") };
}

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Starts a provider and waits until it says that it is ready, which takes a while where its dependencies are fetched first. */
export async function startProvider(
  name: ProviderName,
  { ports }: Places,
  suite: Pick<Suite, "nats" | "credentials">,
): Promise<ChildProcess> {
  const key = name === "typescript" ? await issueProviderKey(suite.credentials, "dice") : undefined;
  const bus = { NATS_URL: suite.nats.url, NATS_NKEY: key?.path };
  const commands = {
    python: async () => ({ command: await findUv(), args: ["run", "provider.py", `${ports.python}`] }),
    go: async () => ({ command: "go", args: ["run", ".", `${ports.go}`] }),
    typescript: async () => ({ command: process.execPath, args: ["provider.ts"], env: { ...process.env, ...bus } }),
  };
  const child = await openChildProcess({ ...(await commands[name]()), cwd: here(name) });
  for await (const line of child.lines()) if (line.startsWith("ready")) return child;
  throw new Error(`the ${name} provider ${textFromExit(await child.exited)}`);
}
