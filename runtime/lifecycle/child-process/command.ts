import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { LocalFailure, refuseLocally } from "../../failure/local-failure.ts";

/**
 * The path of a program: a name is looked for on `PATH`, a path counts from the working directory.
 * Throws `not_found`, which says where it looked.
 */
export function executableFromCommand(command: string, options: { cwd: string; path: string | undefined }): string {
  if (!isDirectory(options.cwd)) refuseLocally("not_found", `the working directory ${options.cwd} does not exist`);
  if (command.includes("/")) {
    const path = isAbsolute(command) ? command : resolve(options.cwd, command);
    if (isExecutable(path)) return path;
    throw new LocalFailure("not_found", `${path} is not an executable file`, { kind: "command_not_found" });
  }
  const path = executableOnPath(command, options.path ?? "");
  if (path !== undefined) return path;
  throw new LocalFailure("not_found", `the command ${command} is not on the PATH`, { kind: "command_not_found" });
}

/** The first file of that name in the search path that may be executed. */
export function executableOnPath(name: string, searchPath: string): string | undefined {
  const folders = searchPath.split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false; // absent or forbidden: both mean that it cannot be run
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
