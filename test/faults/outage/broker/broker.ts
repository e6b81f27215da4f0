// The broker of an outage: one node whose disk can be filled, or three of which some can be killed.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNatsServer } from "#runtime/bus/nats-server/find/find-nats-server.ts";
import { openTestServer } from "../../../harness/bus.ts";
import { openCluster } from "../../../harness/cluster/cluster.ts";

export interface Broker extends AsyncDisposable {
  readonly credentials: string;
  readonly ports: readonly number[];
  readonly replicas: number;
  /** Takes so many of its three nodes, other ones each time, or its disk, and gives what brings it back. */
  fail(nodes: number): Promise<() => Promise<void>>;
}

export async function openBroker(nodes: 1 | 3): Promise<Broker> {
  return nodes === 1 ? openSingle() : openNodes();
}

async function openNodes(): Promise<Broker> {
  const cluster = await openCluster();
  let struck = 0;
  return {
    credentials: cluster.credentials,
    ports: cluster.nodes.map(({ url }) => Number(new URL(url).port)),
    replicas: 3,
    async fail(nodes) {
      const away = [...cluster.nodes, ...cluster.nodes].slice(struck, struck + nodes);
      struck = (struck + 1) % cluster.nodes.length;
      await Promise.all(away.map((node) => node.kill()));
      return async () => void (await Promise.all(away.map((node) => node.restart())));
    },
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

const DISK_MEGABYTES = 192;
const DISK_IS_THERE = "there is a disk";

async function openSingle(): Promise<Broker> {
  await using stack = new AsyncDisposableStack();
  const disk = stack.use(await openDisk());
  const server = stack.use(await openTestServer({ binary: disk.binary }));
  const owned = stack.move();
  return {
    credentials: server.credentials,
    ports: [Number(new URL(server.url).port)],
    replicas: 1,
    async fail() {
      await disk.fill();
      return async () => {
        await disk.free();
        await server.kill(); // a stream that failed to write goes on failing until a restart
        await server.restart();
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * A disk that is seen by a process of its own and by the nats-servers that are started by `binary`: so it outlives each of them,
 * and needs no rights on the machine.
 */
async function openDisk() {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-faults-disk-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const [mountPoint, binary] = [join(directory, "disk"), join(directory, "nats-server")];
  await mkdir(mountPoint);
  const mount = `mount -t tmpfs -o size=${DISK_MEGABYTES}m tmpfs ${mountPoint} && echo ${DISK_IS_THERE} && exec sleep infinity`;
  const holder = spawn("unshare", ["--user", "--map-root-user", "--mount", "sh", "-c", mount], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  stack.defer(() => end(holder));
  await once(holder.stdout, "data");
  const server = await findNatsServer();
  const lines = [
    "#!/bin/sh",
    `case "$*" in *.conf*) ;; *) exec ${server} "$@" ;; esac`,
    'for word in "$@"; do case "$word" in *.conf) dir=$(dirname "$word") ;; esac; done',
    `[ -e "$dir/store" ] || ln -s ${mountPoint} "$dir/store"`,
    `exec nsenter --target ${holder.pid} --user --preserve-credentials --mount ${server} "$@"`,
  ];
  await writeFile(binary, lines.join("\n"));
  await chmod(binary, 0o755);
  const ballast = `/proc/${holder.pid}/root${mountPoint}/ballast`;
  const owned = stack.move();
  return {
    binary,
    async fill() {
      await using file = await open(ballast, "w");
      const chunk = Buffer.alloc(1024 ** 2);
      for (let isFull = false; !isFull; ) {
        isFull = await file.write(chunk).then(
          ({ bytesWritten }) => bytesWritten < chunk.length,
          () => true,
        );
      }
    },
    free: () => rm(ballast),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}
