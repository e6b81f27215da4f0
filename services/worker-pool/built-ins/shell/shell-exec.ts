// A command under a policy. There is no shell: `;`, `$()`, quotes and newlines are characters of an argument like any other.
//
// SHELL1  `argv[0]` is an entry of the allow-list, letter by letter. An entry is a bare name, looked for in directories that the
//     service knows, or an absolute path; where the command runs decides nothing.
// SHELL2  The environment holds a path and a language, and nothing of the service's own.
// SHELL3  When its time is over, its caller leaves, or it writes without end, its whole process group is killed, and whatever
//     carries its mark: a process that has gone into a session of its own too. One that has also wiped its environment is
//     out of reach.
// SHELL4  Its working directory was checked as files are, and is entered by its descriptor.
//
// SHELL5  Where the machine can, it is confined (`runtime/lifecycle/child-process/confinement.ts`): it sees no other process and no key
//     of the suite, and writes below the allowed directories only.
//
// What it reads is not restricted by `allowedPaths`, and unconfined neither is what it writes: it has the rights of the service's
// user. A list with `sh`, `python3`, `git`, `cat` or `wc` in it gives away every other file that this user can read.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { LocalFailure, refuseLocally } from "#runtime/failure/local-failure.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { ChildExit } from "#runtime/lifecycle/child-process/exit.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";
import { type HeldPlace, openAllowed } from "../allowed.ts";
import { type BuiltInCall, defineBuiltIn } from "../built-in.ts";
import { type Captured, createCaptured } from "./captured.ts";

const DEFAULT_OUTPUT_BYTES = 64 * 1024;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** Of arguments together, below what the kernel takes. */
const MAX_ARGUMENT_BYTES = 96 * 1024;
/** A command that writes more is ended: reading it costs the service its time. */
const FLOOD_BYTES = 64 * 1024 * 1024;

export const shellExec = defineBuiltIn({
  name: "shell_exec",
  description:
    "Runs a command and gives its exit code and output. There is no shell: every element of argv is one argument as it stands, and pipes, wildcards and variables mean nothing. An exit code other than 0 is an answer, not an error.",
  effect: Effect.AT_MOST_ONCE,
  arguments: z.strictObject({
    argv: z
      .array(z.string())
      .min(1)
      .max(1_000)
      .describe("The command, letter by letter as it is allowed, and its arguments."),
    cwd: z.string().min(1).optional().describe("Where to run it; the first allowed directory unless told."),
    stdin: z.string().max(MAX_OUTPUT_BYTES).default("").describe("What the command reads; its input ends after it."),
    maxOutputBytes: z
      .number()
      .int()
      .min(256)
      .max(MAX_OUTPUT_BYTES)
      .default(DEFAULT_OUTPUT_BYTES)
      .describe("How much of stdout, and of stderr, is given back: the begin and the end."),
  }),
  async run({ argv, cwd, stdin, maxOutputBytes }, call, commands) {
    const command = allowedCommand(argv, call.policy.allowedCommands);
    await using place = await openWorkingDirectory(cwd, call.policy.allowedPaths);
    call.signal.throwIfAborted();
    const stdout = createCaptured(maxOutputBytes);
    const stderr = createCaptured(maxOutputBytes);
    using ending = openEnding(call.signal); // SHELL3: the first reason to end the command counts
    const keep = (one: Captured, chunk: Buffer) => {
      one.add(chunk);
      if (one.bytes > FLOOD_BYTES) ending.end(`wrote more than ${FLOOD_BYTES} bytes`);
    };
    const child = await openChildProcess({
      command,
      args: argv.slice(1),
      cwd: place.link,
      env: { PATH: commands.searchPath, LANG: "C.UTF-8" }, // SHELL2
      limits: commands.limits,
      confinement: commands.confinement && { ...commands.confinement, writable: writableFor(place, call) },
      onStderr: (chunk) => keep(stderr, chunk),
    }).catch((error: unknown) => {
      throw failureFromStart(error, command);
    });
    ending.signal.addEventListener("abort", () => void child.kill(), { once: true });
    if (ending.signal.aborted) void child.kill();
    const policyMs = msFromDuration(call.policy.timeout) ?? Number.POSITIVE_INFINITY;
    const timeOver = policyMs < call.timeoutMs ? `after ${policyMs}ms` : "at the end of its call's time";
    const stopTimer = startTimer(Math.min(policyMs, call.timeoutMs), () => ending.end(`timed out ${timeOver}`));
    try {
      child.write(stdin).catch(() => {}); // a command need not read what it is given
      child.endInput();
      for await (const chunk of child.output()) keep(stdout, chunk);
      const exit = await child.exited;
      call.signal.throwIfAborted();
      return answerFrom({ exit, stopped: ending.signal.reason, stdout, stderr, command });
    } finally {
      stopTimer();
      await child.kill();
    }
  },
});

/** SHELL1. */
function allowedCommand(argv: readonly string[], allowed: readonly string[]): string {
  const [command = ""] = argv;
  const list = allowed.length === 0 ? "none" : allowed.map((one) => JSON.stringify(one)).join(", ");
  if (!allowed.includes(command))
    refuseLocally("permission_denied", `${JSON.stringify(command)} is not one of the allowed commands (${list})`);
  if (command === "" || (command.includes("/") && !command.startsWith("/")))
    refuseLocally(
      "permission_denied",
      `the policy names ${JSON.stringify(command)}, which is neither a bare name nor an absolute path`,
    );
  if (argv.some((argument) => argument.includes("\0")))
    refuseLocally("invalid_argument", "an argument holds a NUL character");
  const bytes = argv.reduce((sum, argument) => sum + Buffer.byteLength(argument) + 1, 0);
  if (bytes > MAX_ARGUMENT_BYTES)
    refuseLocally(
      "invalid_argument",
      `argv has ${bytes} bytes, over the limit of ${MAX_ARGUMENT_BYTES}: give it on stdin`,
    );
  return command;
}

type WorkingDirectory = Pick<HeldPlace, "link"> & AsyncDisposable;

/** A confined command writes below the allowed directories, or into the one of its own. */
function writableFor(place: WorkingDirectory, { policy }: BuiltInCall): readonly string[] {
  return policy.allowedPaths.length > 0 ? policy.allowedPaths : [place.link];
}

/** SHELL4. A policy without directories gives its commands an empty one, which goes with them. */
async function openWorkingDirectory(
  cwd: string | undefined,
  allowedPaths: readonly string[],
): Promise<WorkingDirectory> {
  if (allowedPaths.length > 0 || cwd !== undefined) {
    const held = await (await openAllowed(allowedPaths)).hold(cwd ?? allowedPaths[0] ?? "");
    if (held.stats.isDirectory()) return held;
    await held[Symbol.asyncDispose]();
    return refuseLocally("failed_precondition", `${JSON.stringify(cwd)} is not a directory`);
  }
  const link = await mkdtemp(join(tmpdir(), "toolbus-command-"));
  return { link, [Symbol.asyncDispose]: () => rm(link, { recursive: true, force: true }) };
}

function failureFromStart(error: unknown, command: string): unknown {
  if (!(error instanceof Failure) || error.code !== "not_found") return error;
  return new LocalFailure(
    "not_found",
    `the command ${JSON.stringify(command)} is not installed where the service runs`,
  );
}

function answerFrom({ exit, stopped, stdout, stderr, command }: Ended): object {
  const output = { stdout: stdout.text(), stderr: stderr.text() };
  if (stopped === undefined) {
    const { code, signal } = exit;
    const isCut = stdout.isCut || stderr.isCut;
    return { exitCode: code, ...(signal && { signal }), ...output, ...(isCut && { truncated: true }) };
  }
  const text = `${command} ${stopped} and was ended with all that it had started. stdout: ${last(output.stdout)} stderr: ${last(output.stderr)}`;
  return refuseLocally("deadline_exceeded", text);
}

interface Ended {
  exit: ChildExit;
  /** Why it was ended before its time, if it was. */
  stopped: string | undefined;
  stdout: Captured;
  stderr: Captured;
  command: string;
}

function last(text: string): string {
  return JSON.stringify(text.slice(-2_000));
}
