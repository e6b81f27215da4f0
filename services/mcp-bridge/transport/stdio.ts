import { refuse } from "#runtime/failure/failure.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { type ChildExit, textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { transportFromChannel } from "./channel.ts";
import type { TransportModule } from "./module.ts";

const STDERR_TAIL_BYTES = 2_048;

/** A process of ours: one message a line on its stdin and stdout. */
export const stdio: TransportModule = {
  name: "stdio",
  schemes: [],
  async open({ name, transport }, { environment, confinement, maxMessageBytes, logger, redact, onWords }) {
    if (transport.case !== "stdio")
      return refuse("invalid_argument", `${name} has no command`, { reason: "INVALID_REQUEST" });
    const { command, args, env } = transport.value;
    const child = await openChildProcess({
      command,
      args,
      env: { ...environment, ...env },
      confinement,
      maxLineBytes: maxMessageBytes,
      stderrTailBytes: STDERR_TAIL_BYTES,
      onStderrLine: (line) => {
        const words = redact(line);
        logger.debug({ server: name, stderr: words }, "stderr");
        onWords?.(words);
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
      describeEnd: () => redact(exit ? `the process ${textFromExit(exit)}` : lastWords(child.stderrTail())),
    };
  },
};

function lastWords(stderrTail: string): string {
  return stderrTail && `it wrote to stderr: ${stderrTail}`;
}
