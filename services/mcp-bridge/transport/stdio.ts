import { type ChildExit, textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process.ts";
import { transportFromChannel } from "./channel.ts";
import type { TransportModule } from "./module.ts";

const STDERR_TAIL_BYTES = 2_048;

/** A process of ours: one message a line on its stdin and stdout. */
export const stdio: TransportModule = {
  name: "stdio",
  schemes: [],
  async open(server, { environment, maxMessageBytes, logger, redact }) {
    const child = await openChildProcess({
      command: server.command,
      args: server.args,
      env: { ...environment, ...server.env },
      maxLineBytes: maxMessageBytes,
      stderrTailBytes: STDERR_TAIL_BYTES,
      onStderrLine: (line) => logger.debug({ server: server.name, stderr: redact(line) }, "stderr"),
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
