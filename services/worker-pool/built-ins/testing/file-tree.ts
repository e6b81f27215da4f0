import { execFileSync } from "node:child_process";
import { link, mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Builtin } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type Outcome, openPoolOnBus, type PoolOnBus } from "../../testing/pool-on-bus.ts";

export const SECRET = "what nobody may read";
export const OUTSIDE = /is not below the allowed directories/;

/** A pool, and in its directory a tree that is allowed, beside another that is not, with all that leads from one to the other. */
export interface FileTree extends AsyncDisposable {
  pool: PoolOnBus;
  inside: string;
  outside: string;
  /** Calls a built-in under a policy that allows the inside, unless told otherwise. */
  call(tool: string, args: object, allowedPaths?: string[]): Promise<Outcome>;
}

export async function openFileTree(): Promise<FileTree> {
  const pool = await openPoolOnBus();
  const socket = createServer();
  const { inside, outside } = await writeFileTree(pool.directory);
  await new Promise<void>((resolve) => socket.listen(join(inside, "socket"), resolve));
  return {
    pool,
    inside,
    outside,
    call: (tool, args, allowedPaths = [inside]) =>
      pool.call({
        tool,
        args,
        builtinPolicy: { builtin: Builtin[tool.toUpperCase() as keyof typeof Builtin], allowedPaths },
      }),
    async [Symbol.asyncDispose]() {
      socket.close();
      await pool[Symbol.asyncDispose]();
    },
  };
}

export async function writeFileTree(directory: string): Promise<{ inside: string; outside: string }> {
  const [inside, outside] = [join(directory, "inside"), join(directory, "outside")];
  await writeFiles(inside, outside);
  await writeLinks(inside, outside);
  execFileSync("mkfifo", [join(inside, "fifo")]);
  return { inside, outside };
}

async function writeFiles(inside: string, outside: string): Promise<void> {
  await mkdir(join(inside, "sub"), { recursive: true });
  await mkdir(outside);
  await mkdir(`${inside}-too`);
  for (const place of [outside, `${inside}-too`]) await writeFile(join(place, "secret.txt"), SECRET);
  await writeFile(join(inside, "plain.txt"), "plain");
  await writeFile(join(inside, "sub", "deep.txt"), "deep");
  await writeFile(join(inside, "no-text.bin"), Buffer.from([0x61, 0xff, 0xfe, 0x62]));
  await writeFile(join(inside, "%2e%2e"), "a name like any other");
  await writeFile(join(inside, "wide.txt"), "aé😀b");
  await writeFile(join(inside, "huge.bin"), "begin");
  await truncate(join(inside, "huge.bin"), 1e12);
}

async function writeLinks(inside: string, outside: string): Promise<void> {
  await symlink("sub/deep.txt", join(inside, "good-link"));
  await symlink(join(outside, "secret.txt"), join(inside, "bad-link"));
  await symlink(join(outside, "absent.txt"), join(inside, "nowhere-link"));
  await symlink(outside, join(inside, "bad-directory"));
  await symlink("/proc/self/root", join(inside, "root-link"));
  await symlink("circle", join(inside, "circle"));
  await link(join(outside, "secret.txt"), join(inside, "hard-link.txt"));
}
