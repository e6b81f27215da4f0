import { expect, test } from "vitest";
import { commandIn, VALUED_OPTIONS } from "./command-word.ts";

test.each<[string, string | undefined]>([
  ["up", "up"],
  ["chat dev", "chat"],
  ["run demo bring it up", "run"],
  ["--url http://127.0.0.1:7480 run demo", "run"],
  ["--context up agents", "agents"],
  ["-u http://127.0.0.1:7480 --json dev", "dev"],
  ["--url=http://127.0.0.1:7480 serve", "serve"],
  ["--version", undefined],
  ["", undefined],
])("%j calls the command %s", (words, command) => {
  expect(commandIn(words.split(" ").filter(Boolean))).toBe(command);
});

test("options with a value are known", () => {
  expect([...VALUED_OPTIONS]).toEqual(["-u", "--url", "--api-key", "--context"]);
});
