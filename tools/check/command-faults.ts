import { type CommandOptions, observeCommand } from "../gen/command.ts";

/** A command that succeeds has no faults, whatever it prints. */
export async function faultsOfCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<string[]> {
  const { exitCode, output } = await observeCommand(command, args, options);
  if (exitCode === 0) return [];
  const lines = linesOf(output);
  return lines.length > 0 ? lines : [`${command} ended with ${exitCode} and said nothing`];
}

export function linesOf(output: string): string[] {
  return output.split("\n").filter((line) => line.trim() !== "");
}
