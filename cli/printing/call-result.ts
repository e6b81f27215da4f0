import { createHash } from "node:crypto";
import { once } from "node:events";
import { open } from "node:fs/promises";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import type { Command } from "commander";
import { type StoredResult, ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { type Connection, globalOptionsOf, openConnection } from "../connection.ts";
import { printNote, printProgress, resultOutput } from "./terminal.ts";

const patienceMs = 15_000;
const progressMs = 500;

export function addResultCommand(calls: Command): void {
  calls
    .command("result")
    .description("Write the result of a call, whole, to a file or to standard output")
    .argument("<id>", "the call's id, or the storedReference of a result that was shown shortened")
    .option("-o, --output <file>", "the file to write")
    .action(writeResult);
}

async function writeResult(id: string, { output }: { output?: string }, command: Command): Promise<void> {
  const connection = openConnection(globalOptionsOf(command));
  if (output === undefined) return void (await copyResult(connection, id, { target: resultOutput() }));
  const target = (await open(output, "w")).createWriteStream();
  const written = finished(target);
  const copying = copyResult(connection, id, { target, onProgress: tellProgress });
  await Promise.race([copying, written]); // a disk that is full ends it, too
  const { size } = await copying;
  target.end();
  await written;
  printNote(`${output}: ${size} bytes`);
}

export interface Copying {
  readonly target: Writable;
  readonly onProgress?: ((bytes: number, size: number) => void) | undefined;
}

/** A stream that breaks is taken up where it broke. What comes is held against the digest of the whole. */
export async function copyResult(connection: Connection, id: string, { target, onProgress }: Copying) {
  const calls = connection.client(ToolCallService);
  const isReference = id.includes(".sha256-");
  const result = isReference ? { case: "storedReference" as const, value: id } : { case: "callId" as const, value: id };
  const digest = createHash("sha256");
  let told: StoredResult | undefined;
  let bytes = 0;
  const openAtPlace = () => calls.readResult({ result, offset: BigInt(bytes) });
  for await (const { part } of resumed({ open: openAtPlace, patienceMs })) {
    if (part.case === "result") told = part.value;
    if (part.case !== "chunk") continue;
    const { data } = part.value;
    digest.update(data);
    bytes += data.length;
    onProgress?.(bytes, Number(told?.size ?? 0));
    if (!target.write(data)) await once(target, "drain");
  }
  if (told === undefined || bytes !== Number(told.size) || !digest.digest().equals(told.sha256)) {
    throw new Error(`the result of ${id} came damaged: ${bytes} of ${told?.size ?? 0} bytes`);
  }
  return { size: bytes };
}

let toldAtMs = 0;

function tellProgress(bytes: number, size: number): void {
  if (!process.stderr.isTTY || performance.now() - toldAtMs < progressMs) return;
  toldAtMs = performance.now();
  printProgress(`${bytes} of ${size} bytes`);
}
