import { type DescMessage, fromJsonString, type MessageShape } from "@bufbuild/protobuf";
import { until as untilWithin } from "#runtime/time/until.ts";
import { type CommandOptions, type Ending, runCommand, type StartedCommand, startCommand } from "./command.ts";

/** The command `toolbus` at a suite, whose address is asked for when a command starts. */
export function commandsAt(url: () => string) {
  return {
    toolbus: (...args: string[]): Promise<Ending> => runCommand(["--url", url(), ...args]),
    toolbusWith: (options: CommandOptions, ...args: string[]) => runCommand(["--url", url(), ...args], options),
    follow: (...args: string[]): StartedCommand => startCommand(["--url", url(), ...args]),
  };
}

/** Commands are processes that start, which a busy machine makes slow. */
export const until: typeof untilWithin = (condition, options) =>
  untilWithin(condition, { timeoutMs: 30_000, ...options });

/** Each line of the output, which is the contract's JSON form of a message. Throws for any other. */
export function messagesIn<D extends DescMessage>(schema: D, text: string): MessageShape<D>[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => fromJsonString(schema, line));
}

export function firstIn<D extends DescMessage>(schema: D, text: string): MessageShape<D> {
  const [first, ...more] = messagesIn(schema, text);
  if (first === undefined || more.length > 0) throw new Error(`expected one line: ${text}`);
  return first;
}
