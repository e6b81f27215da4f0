import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { BuiltIn } from "./built-in.ts";
import { fsRead } from "./files/fs-read.ts";
import { fsWrite } from "./files/fs-write.ts";
import { shellExec } from "./shell/shell-exec.ts";

export const builtInByName: ReadonlyMap<string, BuiltIn> = new Map(
  [fsRead, fsWrite, shellExec].map((builtIn) => [builtIn.tool.name, builtIn]),
);

/** What they are like; without a policy none of them can be called. */
export const builtInTools: readonly Tool[] = [...builtInByName.values()].map(({ tool }) => tool);
