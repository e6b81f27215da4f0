import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";

const main = (...args: string[]) =>
  spawnSync(process.execPath, [new URL("main.ts", import.meta.url).pathname, ...args], { encoding: "utf8" });

const names = /<(.+)>/.exec(main().stderr)?.[1]?.split("|") ?? [];

it.each(names)("the fault run %s answers an option that it does not have with its usage", (name) => {
  const { status, stderr } = main(name, "--unknown");
  expect(stderr).toMatch(new RegExp(`^Unknown option '--unknown'.*\nusage: npm run faults -- ${name} `));
  expect(status).toBe(2);
});
