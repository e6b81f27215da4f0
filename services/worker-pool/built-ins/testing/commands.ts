import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Builtin } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { openPoolOnBus, type PoolOnBus } from "../../testing/pool-on-bus.ts";

export const ALLOWED = ["printf", "cat", "env", "sleep", "sh", "yes", "pwd", "python3", "wc", "false"];

interface CommandInput {
  allowed?: string[];
  paths?: string[];
  args?: object;
  policyMs?: number;
  timeoutMs?: number;
  signal?: AbortSignal;
}

interface CommandOutcome {
  /** Empty when it ran. */
  error: string;
  stdout?: string;
  stderr?: string;
  exitCode?: number | null;
  signal?: string;
  truncated?: boolean;
}

/** A pool, and in its directory an allowed one that holds programs named like the allowed commands. */
export interface Commands extends AsyncDisposable {
  inside: string;
  run(argv: string[], input?: CommandInput): Promise<CommandOutcome>;
}

export async function openCommands(): Promise<Commands> {
  const pool = await openPoolOnBus(() => ({ TOOLBUS_SECRET_KEY: "hush-hush", LD_PRELOAD: "" }));
  const inside = join(pool.directory, "inside");
  await mkdir(join(inside, "sub"), { recursive: true });
  for (const name of ["cat", "printf", "sub/cat"]) {
    await writeFile(join(inside, name), "#!/bin/sh\necho hijacked\n");
    await chmod(join(inside, name), 0o755);
  }
  await symlink("/etc", join(inside, "etc-link"));
  return {
    inside,
    run: (argv, input) => run(pool, argv, { paths: [inside], ...input }),
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

async function run(pool: PoolOnBus, argv: string[], input: CommandInput): Promise<CommandOutcome> {
  const { allowed = ALLOWED, paths = [], args = {}, policyMs = 0, timeoutMs, signal } = input;
  const { value, isError } = await pool.call(
    {
      tool: "shell_exec",
      args: { argv, ...args },
      builtinPolicy: {
        builtin: Builtin.SHELL_EXEC,
        allowedPaths: paths,
        allowedCommands: allowed,
        ...(policyMs > 0 && { timeout: durationFromMs(policyMs) }),
      },
      ...(timeoutMs !== undefined && { timeoutMs }),
    },
    signal,
  );
  return isError ? { error: String(value) } : { error: "", ...(value as object) };
}
