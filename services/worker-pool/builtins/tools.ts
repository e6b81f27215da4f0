import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Builtin } from "./builtin.ts";
import { fsRead } from "./files/fs-read.ts";
import { fsWrite } from "./files/fs-write.ts";
import { shellExec } from "./shell/shell-exec.ts";

export const builtinByName: ReadonlyMap<string, Builtin> = new Map(
  [fsRead, fsWrite, shellExec].map((builtin) => [builtin.tool.name, builtin]),
);

/** What they are like; without a policy none of them can be called. */
export const builtinTools: readonly Tool[] = [...builtinByName.values()].map(({ tool }) => tool);
