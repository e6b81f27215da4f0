// A parent to be killed: opens a child with a grandchild that ignores SIGTERM and one in a session of its own, tells their ids, and waits for its end.
import { openChildProcess } from "../child-process.ts";

const child = await openChildProcess({
  command: "sh",
  args: [
    "-c",
    "trap '' TERM; (trap '' TERM; echo grandchild $(exec sh -c 'echo $PPID'); sleep 600) & setsid sh -c 'echo stranger $$; exec sleep 600' & echo child $$; wait",
  ],
});
for await (const line of child.lines()) process.stdout.write(`${line}\n`);
