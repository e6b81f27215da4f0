import { stripVTControlCharacters } from "node:util";
import { refuse } from "#runtime/failure/failure.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { type ChildExit, textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { transportFromChannel } from "./channel.ts";
import type { TransportModule } from "./module.ts";

/** Of the end of what it wrote to stderr. */
const MOST_WORDS = 2_048;

/** Of a stack trace of the JVM, Node.js or .NET the errors are told, not the places: a long one would hide them. */
const STACK_FRAMES =
  /^[ \t]+(?:at .*(?:\)(?: ~?\[[^[\]]*\])?|:(?:line )?\d+)|\.{3} \d+ (?:more|common frames omitted))(?:\n|$)/gm;

/** A process of ours: one message a line on its stdin and stdout. */
export const stdio: TransportModule = {
  name: "stdio",
  schemes: [],
  async open({ name, transport }, { environment, confinement, maxMessageBytes, logger, redact, onWords }) {
    if (transport.case !== "stdio")
      return refuse("invalid_argument", `${name} has no command`, { reason: "INVALID_REQUEST" });
    const { command, args, env } = transport.value;
    const wordsOf = (stderr: string) => redact(stripVTControlCharacters(stderr));
    const child = await openChildProcess({
      command,
      args,
      env: { ...environment, ...env },
      confinement,
      maxLineBytes: maxMessageBytes,
      onStderrLine: (line) => {
        const words = wordsOf(line);
        logger.debug({ server: name, stderr: words }, "stderr");
        if (words.search(STACK_FRAMES) < 0) onWords?.(words);
      },
    });
    let exit: ChildExit | undefined;
    void child.exited.then((exited) => {
      exit = exited;
    });
    const channel = {
      send: (text: string) => child.write(`${text}\n`),
      receive: () => child.lines(),
      close: async () => void (await child.close()),
    };
    return {
      transport: transportFromChannel(channel, child.pid),
      describeEnd() {
        const stderrTail = wordsOf(child.stderrTail()).replace(STACK_FRAMES, "").trimEnd().slice(-MOST_WORDS);
        if (exit) return `the process ${textFromExit({ ...exit, stderrTail })}`;
        return stderrTail && `it wrote to stderr: ${stderrTail}`;
      },
    };
  },
};
